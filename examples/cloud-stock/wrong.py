"""WRONG: a cloud function that takes pieces off the stock each time its event is delivered.

`pieces = pieces - n` is relative to what is there: the second delivery of an order takes the pieces a second time.
"""

import os

import functions_framework
import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


@functions_framework.cloud_event
def on_order(event):
    order = event.data
    with psycopg.connect(DATABASE) as db:
        taken = db.execute(
            "UPDATE cloud_stock SET pieces = pieces - %(pieces)s WHERE item = %(item)s AND pieces >= %(pieces)s",
            order,
        )
    if taken.rowcount == 0:  # no such item, or not enough of it: another delivery would not change that
        print(f"order {order['order']} is dropped")


if __name__ == "__main__":
    app = functions_framework.create_app("on_order", __file__)
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", 3000)))
