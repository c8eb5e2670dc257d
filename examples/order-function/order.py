"""What an order must look like, and what it takes from the stock."""


def mistake(order):
    """Why no delivery of this order can ever succeed; nothing if it can."""
    if not isinstance(order, dict):
        return "an order is a JSON object"
    for name in ("order_id", "item"):
        if not isinstance(order.get(name), str) or not order[name] or "/" in order[name]:
            return f"an order has a {name}"
    quantity = order.get("quantity")
    if type(quantity) is not int or quantity < 1:
        return "an order has a quantity, a whole number from 1"
    return None


def taken(item, order):
    """Status and answer, given the item as it was read; only 200 takes anything."""
    if not item.exists:
        return 404, {"error": "no such item"}
    left = item.get("n") - order["quantity"]
    if left < 0:
        return 409, {"error": f"only {item.get('n')} left"}
    return 200, {"order_id": order["order_id"], "left": left}
