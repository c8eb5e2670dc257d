"""WRONG: the order function as it is often published, with just enough put right to let it run.

A transaction looks whether the order was processed, and then takes the pieces and notes the order. That holds, as long as
every order has an id: `document(None)` makes one up, so an order without an id is a new order each time it is delivered.
"""

import os

import functions_framework
from google.cloud import firestore

db = firestore.Client()


@firestore.transactional
def process(transaction, order_ref, item_ref, quantity):
    if order_ref.get(transaction=transaction).exists:
        return "already processed"
    left = item_ref.get(transaction=transaction).get("n") - quantity
    if left < 0:
        raise ValueError("out of stock")
    transaction.set(order_ref, {"status": "processed"})
    transaction.update(item_ref, {"n": left})
    return "processed"


@functions_framework.http
def on_order(request):
    order = request.get_json()
    order_ref = db.collection("processed_orders").document(order.get("order_id"))
    item_ref = db.collection("stock").document(order["item"])
    return process(db.transaction(), order_ref, item_ref, order["quantity"])


if __name__ == "__main__":
    app = functions_framework.create_app("on_order", __file__)
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", 3000)))
