"""RIGHT: the function behind the gate; it takes the pieces and records that it did in one transaction.

The gate sends Semel-Key and Semel-Fence with each run. Of all the runs of an order only one can complete it.
"""

import json
import os

import functions_framework
import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


def take(db, order):
    """Takes the pieces. Status and answer; only 200 has changed anything."""
    row = db.execute(
        "UPDATE cloud_stock SET pieces = pieces - %(pieces)s WHERE item = %(item)s AND pieces >= %(pieces)s"
        " RETURNING pieces",
        order,
    ).fetchone()
    if row:
        return 200, {"order": order["order"], "left": row[0]}
    known = db.execute("SELECT pieces FROM cloud_stock WHERE item = %(item)s", order).fetchone()
    if known:
        return 409, {"order": order["order"], "error": f"only {known[0]} left"}
    return 404, {"order": order["order"], "error": "no such item"}


@functions_framework.http
def on_order(request):
    key, fence = request.headers["Semel-Key"], int(request.headers["Semel-Fence"])
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        status, answer = take(db, request.get_json())
        if status == 200:
            db.execute("SELECT semel.complete(%s, %s, %s, %s)", (key, fence, status, json.dumps(answer)))
    return answer, status


if __name__ == "__main__":
    app = functions_framework.create_app("on_order", __file__)
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", 3000)))
