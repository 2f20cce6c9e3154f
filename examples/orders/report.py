"""Late orders by customer; a tenth of the price back for those that are later than `limit_days`."""

by_customer = {}
for order in search_orders(min_days_late=1):
    by_customer.setdefault(order.customer_id, []).append(order)

rows = []
for customer_id, orders in sorted(by_customer.items()):
    customer = get_customer(customer_id)
    refunds = 0
    for order in orders:
        if order.days_late > limit_days:
            add_refund(order.id, order.cents // 10, f"{order.days_late} days late")
            refunds += order.cents // 10
    rows.append(
        {
            "customer": customer.name,
            "late": len(orders),
            "worst": max(order.days_late for order in orders),
            "refunded": refunds,
        }
    )
    emit_log(f"{customer.name}: {len(orders)} late")

# Once is enough: the host refuses the second refund of an order.
try:
    add_refund("A-2", 100, "again")
except ToolError as error:
    print(f"{error.code}: {error}")

emit_result(rows)
