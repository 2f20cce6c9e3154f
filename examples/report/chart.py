import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

orders = pd.read_csv("out/orders-clean.csv", parse_dates=["date"])
orders["revenue"] = orders["quantity"] * orders["price"]
orders["month"] = orders["date"].dt.strftime("%b")
by_month = orders.pivot_table(index="month", columns="product", values="revenue", aggfunc="sum", sort=False)

print("drawing", flush=True)
axes = by_month.plot.bar(stacked=True, figsize=(8, 4.5), width=0.7, rot=0)
axes.set(title="Revenue by month and product, 2026", xlabel="", ylabel="EUR")
axes.legend(title="", frameon=False, ncols=4, loc="upper left")
axes.set_ylim(0, by_month.sum(axis=1).max() * 1.15)
axes.grid(axis="y", alpha=0.3)
axes.set_axisbelow(True)
axes.spines[["top", "right"]].set_visible(False)
plt.tight_layout()
plt.savefig("out/revenue.png", dpi=120)

emit_result({"total": round(float(orders["revenue"].sum()), 2)})
