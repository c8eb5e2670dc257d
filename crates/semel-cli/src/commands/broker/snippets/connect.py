# Python: pip install google-cloud-tasks google-cloud-pubsub
import os

import grpc
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport

# Cloud Tasks reads no variable: hand its client a channel. No credentials are needed.
channel = grpc.insecure_channel("127.0.0.1:8085")
tasks = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))

queue = tasks.queue_path("demo", "europe-west1", "orders")
tasks.update_queue(request={"queue": {"name": queue}})  # makes it if there is none
task = {"http_request": {"url": "http://127.0.0.1:3000/", "body": b"hello"}}
print(tasks.create_task(request={"parent": queue, "task": task}).name)

# Pub/Sub reads PUBSUB_EMULATOR_HOST when a client is made; no scheme before the host.
os.environ["PUBSUB_EMULATOR_HOST"] = "127.0.0.1:8085"
from google.api_core.exceptions import AlreadyExists
from google.cloud import pubsub_v1

publisher = pubsub_v1.PublisherClient()
topic = publisher.topic_path("demo", "invoices")
try:
    publisher.create_topic(request={"name": topic})
except AlreadyExists:
    pass
print(publisher.publish(topic, b"hello", kind="invoice").result())
