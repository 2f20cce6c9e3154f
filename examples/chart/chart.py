import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv")
by_month = sales.pivot_table(index="month", columns="region", values="sales", aggfunc="sum")

axes = by_month.plot(figsize=(8, 4.5), marker="o", linewidth=2)
axes.set(title="Sales by region", xlabel="", ylabel="thousand euros")
axes.grid(alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
plt.tight_layout()
plt.savefig("chart.png", dpi=120)

emit_result(sales.groupby("region")["sales"].sum().round(1))
