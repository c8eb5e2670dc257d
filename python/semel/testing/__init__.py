"""Tests of functions and tasks that run once.

The pytest fixture ``deliver`` comes with the package::

    def test_payment(deliver, payments):
        deliver.twice(process_payment, 7, Decimal("9.00"))
        assert payments(7) == 1
"""

from ._deliver import Crash, Deliver

__all__ = ["Crash", "Deliver"]
