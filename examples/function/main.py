"""A Cloud Function that knows nothing of duplicates: every event takes effect.

It gets CloudEvents, and pushes of Pub/Sub, which the framework turns into CloudEvents.
"""

import base64
import os

import functions_framework


@functions_framework.cloud_event
def on_event(event):
    message = (event.data or {}).get("message")
    what = base64.b64decode(message["data"]).decode() if message else event.data["name"]
    with open(os.environ.get("LEDGER", "ledger.txt"), "a") as ledger:
        ledger.write(f"{event['type']} {what}\n")
