"""RIGHT, without a gate: the name of the order is remembered in the Commit that takes the pieces.

There is no gate to keep what cannot succeed as a letter, so the function says 204 and logs it.
"""

import os

import functions_framework
import semel.firestore
from google.cloud import firestore
from order import mistake, taken

db = firestore.Client()


@functions_framework.http
def on_order(request):
    order = request.get_json(silent=True)
    dropped = mistake(order) or semel.firestore.run_in_batch(db, lambda batch: take(batch, order))
    if dropped:
        print(f"dropped: {dropped}: {order}")
    return "", 204


def take(batch, order):
    """Why nothing was taken, and never will be; nothing if the order has been served, now or earlier."""
    item = db.collection("stock").document(order["item"]).get()
    if not semel.firestore.once(batch, f"order {order['order_id']}"):
        return None
    status, answer = taken(item, order)
    if status != 200:
        return answer["error"]  # remembered all the same: what was dropped stays dropped after the next delivery of lamps
    unchanged = db.write_option(last_update_time=item.update_time)
    batch.update(item.reference, {"n": answer["left"]}, option=unchanged)
    return None


if __name__ == "__main__":
    app = functions_framework.create_app("on_order", __file__)
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", 3000)))
