"""Celery tasks that take effect once.

    app = Celery("shop", task_cls="semel.celery:Task")
    semel.celery.setup(app, semel.Semel("postgres://semel@db/semel", namespace="shop"))

    @app.task(bind=True, once="payment_id", acks_late=True, reject_on_worker_lost=True)
    def process_payment(self, payment_id: int, amount: Decimal): ...
"""

from ._check import Finding, check
from ._letters import Letter, discard, letters, redrive
from ._setup import setup
from ._task import Task

__all__ = ["Finding", "Letter", "Task", "check", "discard", "letters", "redrive", "setup"]
