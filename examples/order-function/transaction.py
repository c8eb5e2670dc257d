"""RIGHT, by a transaction: as `right.py`, but what is read is locked until the Commit.

Whoever dies in between leaves the locks of the item and of the record for 60 seconds.
"""

import json
import os

import functions_framework
import semel.firestore
from google.cloud import firestore
from order import mistake, taken

db = firestore.Client()


@firestore.transactional
def take(transaction, order, key, fence):
    item = db.collection("stock").document(order["item"]).get(transaction=transaction)
    status, answer = taken(item, order)
    if status == 200:
        semel.firestore.complete(transaction, key, fence, status, json.dumps(answer))
        transaction.update(item.reference, {"n": answer["left"]})
    return answer, status


@functions_framework.http
def on_order(request):
    order = request.get_json(silent=True)
    wrong = mistake(order)
    if wrong:
        return {"error": wrong}, 400
    return take(db.transaction(), order, request.headers["Semel-Key"], request.headers["Semel-Fence"])


if __name__ == "__main__":
    app = functions_framework.create_app("on_order", __file__)
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", 3000)))
