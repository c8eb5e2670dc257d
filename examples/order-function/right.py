"""RIGHT: the function behind the gate. The record of the run and the new stock are one Commit, by a batch.

The gate sends Semel-Key and Semel-Fence with each run. Of all the runs of an order only one can complete it. What cannot
succeed is answered without completing: 400, 404 and 409 are final for the gate, and kept as letters.
"""

import json
import os

import functions_framework
import semel.firestore
from google.cloud import firestore
from order import mistake, taken

db = firestore.Client()


@functions_framework.http
def on_order(request):
    order = request.get_json(silent=True)
    wrong = mistake(order)
    if wrong:
        return {"error": wrong}, 400
    key, fence = request.headers["Semel-Key"], request.headers["Semel-Fence"]

    def take(batch):
        item = db.collection("stock").document(order["item"]).get()
        status, answer = taken(item, order)
        if status == 200:
            semel.firestore.complete(batch, key, fence, status, json.dumps(answer))
            unchanged = db.write_option(last_update_time=item.update_time)
            batch.update(item.reference, {"n": answer["left"]}, option=unchanged)
        return answer, status

    return semel.firestore.run_in_batch(db, take)


if __name__ == "__main__":
    app = functions_framework.create_app("on_order", __file__)
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", 3000)))
