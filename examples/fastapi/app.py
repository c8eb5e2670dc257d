"""A FastAPI service that knows nothing of duplicates: every request takes effect.

Behind `semel gate` each order is charged once, however often its task or request is delivered.
"""

import os
import uuid

import fastapi
import pydantic

app = fastapi.FastAPI()


class Order(pydantic.BaseModel):
    order: str


def note(line: str) -> None:
    """Stands for an effect: a charge, a mail."""
    with open(os.environ.get("LEDGER", "ledger.txt"), "a") as ledger:
        ledger.write(line + "\n")


@app.post("/tasks/charge")
def charge(order: Order) -> dict:
    """Called by Cloud Tasks."""
    note(f"charged {order.order}")
    return {"charged": order.order}


@app.post("/orders", status_code=201)
def create(order: Order) -> dict:
    """Called by API clients with an Idempotency-Key."""
    note(f"created {order.order}")
    return {"order": order.order, "id": str(uuid.uuid4())}
