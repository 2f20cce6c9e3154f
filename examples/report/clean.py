from pathlib import Path

import pandas as pd

orders = pd.read_csv("in/orders.csv", sep=";", dtype=str)
found = len(orders)

orders = orders.drop_duplicates("order").dropna(subset=["quantity"])
orders["product"] = orders["product"].str.strip().str.capitalize()
orders["quantity"] = orders["quantity"].str.extract(r"(\d+)", expand=False).astype(int)
orders["price"] = orders["price"].str.replace(",", ".").str.extract(r"([\d.]+)", expand=False).astype(float)


def read_date(text):
    for form in ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"):
        date = pd.to_datetime(text, format=form, errors="coerce")
        if not pd.isna(date):
            return date
    raise ValueError(f"no date: {text!r}")


orders["date"] = orders["date"].map(read_date)
orders = orders.sort_values(["date", "order"])

Path("out").mkdir(exist_ok=True)
orders.to_csv("out/orders-clean.csv", index=False, date_format="%Y-%m-%d")
emit_result({"rows": found, "kept": len(orders)})
