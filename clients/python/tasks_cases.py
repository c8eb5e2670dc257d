"""The cases of Google's samples of Cloud Tasks and of other emulators, told again: `python tasks_cases.py HOST:PORT PORT`,
the second port being that of the broker's `--app-engine-url`.

`docs/broker.md` says which case of theirs is which of ours."""

import datetime
import itertools
import json
import sys

import grpc
from google.api_core import exceptions
from google.cloud import tasks_v2, tasks_v2beta3
from google.protobuf.duration_pb2 import Duration

from cases import case, raises, run, same
from handler import Handler, until

NAMES = (f"case-{number}" for number in itertools.count())
PROJECT = "projects/shop"
LOCATION = f"{PROJECT}/locations/here"
QUICK = {"min_backoff": Duration(nanos=20_000_000), "max_backoff": Duration(nanos=50_000_000)}


class World:
    """Clients of both versions, and a handler."""

    def __init__(self, broker, port):
        channel = grpc.insecure_channel(broker)
        of = lambda client: client(transport=client.get_transport_class("grpc")(channel=channel))
        self.client, self.beta = of(tasks_v2.CloudTasksClient), of(tasks_v2beta3.CloudTasksClient)
        self.handler = Handler(int(port))

    def queue(self, **fields):
        queue = {"name": f"{LOCATION}/queues/{next(NAMES)}", "retry_config": QUICK, **fields}
        return self.client.create_queue(parent=LOCATION, queue=queue).name

    def path(self, *answers):
        """A path of its own, and the URL of it."""
        path = f"/{next(NAMES)}"
        return path, self.handler.answering(path, *answers)


def create(world, queue, **task):
    return world.client.create_task(parent=queue, task=task)


@case
def create_list_update_and_delete_queues(world):
    name = world.queue()
    assert name in [queue.name for queue in world.client.list_queues(parent=LOCATION)]
    queue = {"name": name, "rate_limits": {"max_dispatches_per_second": 20}}
    changed = world.client.update_queue(queue=queue, update_mask={"paths": ["rate_limits.max_dispatches_per_second"]})
    same(changed.rate_limits.max_dispatches_per_second, 20)
    world.client.delete_queue(name=name)
    with raises(exceptions.NotFound):
        world.client.get_queue(name=name)


@case
def a_queue_that_is_there_or_was_is_refused(world):
    name = world.queue()
    with raises(exceptions.AlreadyExists):
        world.client.create_queue(parent=LOCATION, queue={"name": name})
    world.client.delete_queue(name=name)
    with raises(exceptions.FailedPrecondition):
        world.client.create_queue(parent=LOCATION, queue={"name": name})


@case
def pause_purge_and_resume_a_queue(world):
    name = world.queue()
    same(world.client.pause_queue(name=name).state, tasks_v2.Queue.State.PAUSED)
    path, url = world.path()
    create(world, name, http_request={"url": url})
    world.client.purge_queue(name=name)
    same(list(world.client.list_tasks(parent=name)), [])
    same(world.client.resume_queue(name=name).state, tasks_v2.Queue.State.RUNNING)
    create(world, name, http_request={"url": url})
    same(len(world.handler.requests(path)), 1)


@case
def create_an_http_task_with_a_body(world):
    path, url = world.path()
    payload = json.dumps({"param": "value"}).encode()
    headers = {"Content-Type": "application/json"}
    create(world, world.queue(), http_request={"url": url, "body": payload, "headers": headers})
    [request] = world.handler.requests(path)
    same((request.body, request.headers["Content-Type"]), (payload, "application/json"))


@case
def create_an_http_task_with_a_name_schedule_and_deadline(world):
    queue = world.queue()
    _, url = world.path()
    when = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(hours=1)
    made = create(
        world,
        queue,
        name=f"{queue}/tasks/by-name",
        http_request={"url": url},
        schedule_time=when,
        dispatch_deadline=datetime.timedelta(seconds=30),
    )
    got = world.client.get_task(name=made.name)
    same((got.schedule_time, got.dispatch_deadline), (when, datetime.timedelta(seconds=30)))
    with raises(exceptions.AlreadyExists):
        create(world, queue, name=made.name, http_request={"url": url})
    world.client.delete_task(name=made.name)
    with raises(exceptions.AlreadyExists):
        create(world, queue, name=made.name, http_request={"url": url})


@case
def create_an_http_task_with_a_token(world):
    path, url = world.path()
    token = {"service_account_email": "a@b.iam.gserviceaccount.com", "audience": "somebody"}
    create(world, world.queue(), http_request={"url": url, "oidc_token": token})
    [request] = world.handler.requests(path)
    assert request.headers["Authorization"].startswith("Bearer ey")


@case
def create_an_app_engine_task(world):
    queue = world.queue()
    path, url = world.path()
    host = url.removeprefix("http://").removesuffix(path)
    request = {"relative_uri": path, "body": b"hello", "app_engine_routing": {"host": host}}
    create(world, queue, app_engine_http_request=request)
    [request] = world.handler.requests(path)
    same((request.body, request.headers["X-AppEngine-QueueName"]), (b"hello", queue.rsplit("/", 1)[1]))


@case
def an_app_engine_task_goes_where_the_broker_was_told(world):
    path, _ = world.path()
    create(world, world.queue(), app_engine_http_request={"relative_uri": path, "body": b"hello"})
    same([request.body for request in world.handler.requests(path)], [b"hello"])


@case
def a_task_that_fails_is_tried_again(world):
    path, url = world.path(500, 500, 200)
    task = create(world, world.queue(), http_request={"url": url})
    requests = world.handler.requests(path, 3)
    same([request.headers["X-CloudTasks-TaskRetryCount"] for request in requests], ["0", "1", "2"])
    with raises(exceptions.NotFound):
        until("end of the task", lambda: world.client.get_task(name=task.name) is None)


@case
def a_task_is_given_up_after_its_attempts(world):
    path, url = world.path(500)
    queue = world.queue(retry_config={**QUICK, "max_attempts": 2})
    create(world, queue, http_request={"url": url})
    world.handler.requests(path, 2)
    until("the queue to be empty", lambda: not list(world.client.list_tasks(parent=queue)))
    same(len(world.handler.requests(path, 2)), 2)


@case
def run_a_task_now(world):
    path, url = world.path()
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    task = create(world, world.queue(), http_request={"url": url}, schedule_time=when)
    world.client.run_task(name=task.name)
    same(len(world.handler.requests(path)), 1)


@case
def a_task_that_cannot_be_is_refused(world):
    queue = world.queue()
    with raises(exceptions.InvalidArgument, "payload_type is not set"):
        create(world, queue)
    with raises(exceptions.InvalidArgument):
        create(world, queue, http_request={"url": "not a url"})
    with raises(exceptions.NotFound):
        create(world, f"{LOCATION}/queues/nobody-made-it", http_request={"url": "http://127.0.0.1:9/"})
    with raises(exceptions.InvalidArgument, "Task size too large"):
        create(world, queue, http_request={"url": "http://127.0.0.1:9/", "body": b"x" * (1 << 20)})


@case
def get_and_set_a_queues_policy(world):
    name = world.queue()
    policy = world.client.get_iam_policy(request={"resource": name})
    policy.bindings.add(role="roles/cloudtasks.viewer", members=["allUsers"])
    world.client.set_iam_policy(request={"resource": name, "policy": policy})
    got = world.client.get_iam_policy(request={"resource": name})
    same([binding.role for binding in got.bindings], ["roles/cloudtasks.viewer"])
    asked = {"resource": name, "permissions": ["cloudtasks.tasks.create"]}
    same(list(world.client.test_iam_permissions(request=asked).permissions), ["cloudtasks.tasks.create"])


@case
def list_and_get_locations(world):
    world.queue()
    listed = world.client.list_locations(request={"name": PROJECT}).locations
    assert LOCATION in [location.name for location in listed]
    same(world.client.get_location(request={"name": LOCATION}).location_id, "here")


@case
def batches_and_keys_of_ones_own_are_refused(world):
    queue = world.queue()
    with raises(exceptions.MethodNotImplemented, "is not served here"):
        world.client.batch_delete_tasks(request={"parent": queue, "names": [f"{queue}/tasks/t"]})
    with raises(exceptions.MethodNotImplemented, "is not served here"):
        world.client.get_cmek_config(name=f"{LOCATION}/cmekConfig")


@case
def v2beta3_queues_and_tasks(world):
    queue = {"name": f"{LOCATION}/queues/{next(NAMES)}", "type_": "PUSH"}
    name = world.beta.create_queue(parent=LOCATION, queue=queue).name
    path, url = world.path()
    task = {"http_request": {"url": url, "body": b"hello"}}
    made = world.beta.create_task(parent=name, task=task)
    same(made.view, tasks_v2beta3.Task.View.BASIC)
    same([request.body for request in world.handler.requests(path)], [b"hello"])
    same(world.client.get_queue(name=name).name, name)
    world.beta.delete_queue(name=name)


@case
def v2beta3_pull_queues_are_refused(world):
    queue = {"name": f"{LOCATION}/queues/{next(NAMES)}", "type_": "PULL"}
    with raises(exceptions.MethodNotImplemented, "is not served here"):
        world.beta.create_queue(parent=LOCATION, queue=queue)


if __name__ == "__main__":
    run(World(*sys.argv[1:]))
