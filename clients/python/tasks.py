"""Cloud Tasks with Google's Python client: `python tasks.py HOST:PORT grpc|rest`."""

import datetime
import sys

import grpc
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import Conflict, FailedPrecondition, InvalidArgument, NotFound, BadRequest
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from handler import Handler, check, refused, until

LOCATION = "projects/shop/locations/here"
RUNNING, PAUSED = tasks_v2.Queue.State.RUNNING, tasks_v2.Queue.State.PAUSED
# Retries come quickly, so that nobody waits.
QUICK = {"min_backoff": Duration(nanos=20_000_000), "max_backoff": Duration(nanos=50_000_000)}


def connect(broker, transport):
    if transport == "rest":
        options = ClientOptions(api_endpoint=f"http://{broker}")
        return tasks_v2.CloudTasksClient(
            transport="rest", credentials=AnonymousCredentials(), client_options=options
        )
    channel = grpc.insecure_channel(broker)
    return tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))


class Program:
    def __init__(self, client):
        self.client = client
        self.handler = Handler()

    def queue(self, short, **fields):
        queue = {"name": f"{LOCATION}/queues/{short}", "retry_config": QUICK, **fields}
        return self.client.create_queue(parent=LOCATION, queue=queue).name

    def task(self, queue, url, *, id=None, request=None, **fields):
        task = {"http_request": {"url": url, **(request or {})}, **fields}
        if id:
            task["name"] = f"{queue}/tasks/{id}"
        return self.client.create_task(parent=queue, task=task)

    def gone(self, task):
        """Waits until the task is no longer there."""

        def asked():
            try:
                self.client.get_task(name=task)
            except NotFound as error:
                return error

        return until(f"end of {task}", asked)

    def queues(self):
        name = self.queue("orders", rate_limits={"max_dispatches_per_second": 333})
        got = self.client.get_queue(name=name)
        check("a queue is created and got", (got.name, got.state), (name, RUNNING))
        check("burst follows the rate", got.rate_limits.max_burst_size, 66)
        defaults = (got.rate_limits.max_concurrent_dispatches, got.retry_config.max_attempts)
        check("what was not said has Google's defaults", defaults, (1000, 100))
        with refused("the same queue again", Conflict, "Queue already exists"):
            self.queue("orders")
        changed = self.client.update_queue(
            queue={
                "name": name,
                "rate_limits": {"max_dispatches_per_second": 7, "max_concurrent_dispatches": 3},
            },
            update_mask=FieldMask(paths=["rate_limits.max_dispatches_per_second"]),
        )
        limits = changed.rate_limits
        seen = (limits.max_dispatches_per_second, limits.max_concurrent_dispatches)
        check("the mask says what an update changes", seen, (7, 1000))
        for number in range(4):
            self.queue(f"page-{number}")
        pages = self.client.list_queues(request={"parent": LOCATION, "page_size": 2}).pages
        names = [[queue.name.split("/")[-1] for queue in page.queues] for page in pages]
        check("queues come in pages", max(len(page) for page in names), 2)
        check("every queue is listed once", sorted(sum(names, [])), ["orders", *(f"page-{n}" for n in range(4))])
        self.client.delete_queue(name=f"{LOCATION}/queues/page-0")
        with refused("a deleted queue", NotFound):
            self.client.get_queue(name=f"{LOCATION}/queues/page-0")
        with refused("its name again, so soon", (FailedPrecondition, BadRequest), "too recently"):
            self.queue("page-0")

    def deliver(self):
        queue = self.queue("deliver")
        url = self.handler.answering("/deliver")
        request = {
            "http_method": tasks_v2.HttpMethod.PUT,
            "headers": {"X-Order": "A-1", "Content-Type": "text/plain", "User-Agent": "mine"},
            "body": b"\x00\xffbytes",
        }
        task = self.task(queue, url + "?a=b", id="first", request=request)
        check("the name is kept", task.name, f"{queue}/tasks/first")
        seen = self.handler.requests("/deliver")[0]
        check("method", seen.method, "PUT")
        check("path and query", seen.path, "/deliver?a=b")
        check("body", seen.body, b"\x00\xffbytes")
        check("own headers", (seen.headers["X-Order"], seen.headers["Content-Type"]), ("A-1", "text/plain"))
        check("user agent", seen.headers["User-Agent"], "Google-Cloud-Tasks")
        check("short names", task_headers(seen, "QueueName", "TaskName"), ["deliver", "first"])
        check("first attempt", task_headers(seen, "TaskRetryCount", "TaskExecutionCount"), ["0", "0"])
        check("nothing of earlier attempts", task_headers(seen, "TaskPreviousResponse"), [None])
        check("it had an ETA", float(seen.headers["X-CloudTasks-TaskETA"]) > 0, True)
        check("a finished task is gone", "existed recently" in str(self.gone(task.name)), True)
        with refused("its name again", Conflict, "existed too recently"):
            self.task(queue, url, id="first")
        unnamed = self.task(queue, self.handler.answering("/unnamed"))
        given = self.handler.requests("/unnamed")[0].headers["X-CloudTasks-TaskName"]
        check("a name is made up", (unnamed.name.split("/")[-1], given.isdigit()), (given, True))

    def retry(self):
        queue = self.queue("retry")
        url = self.handler.answering("/retry", 503, 404, 429, 500, 200)
        self.gone(self.task(queue, url).name)
        seen = self.handler.requests("/retry", 5)
        retries, executions, before, reasons = zip(
            *(
                task_headers(one, "TaskRetryCount", "TaskExecutionCount", "TaskPreviousResponse", "TaskRetryReason")
                for one in seen
            )
        )
        check("retries are counted", retries, ("0", "1", "2", "3", "4"))
        check("answers other than 5xx are counted", executions, ("0", "0", "1", "2", "2"))
        check("the previous answer is told", before, (None, "503", "404", "429", "500"))
        check("the reason is there, and empty", reasons, (None, "", "", "", ""))
        check("the name stays", len({one.headers["X-CloudTasks-TaskName"] for one in seen}), 1)

        exhausted = self.queue("exhausted", retry_config={**QUICK, "max_attempts": 2})
        url = self.handler.answering("/exhausted", 500)
        self.gone(self.task(exhausted, url, id="hopeless").name)
        check("attempts end at the maximum", len(self.handler.requests("/exhausted", 2)), 2)
        with refused("the name of an exhausted task", Conflict, "existed too recently"):
            self.task(exhausted, url, id="hopeless")

    def states(self):
        queue = self.queue("states")
        url = self.handler.answering("/states")
        check("paused", self.client.pause_queue(name=queue).state, PAUSED)
        task = self.task(queue, url, id="waits", request={"body": b"secret"})
        with refused("a name that waits", Conflict, "Requested entity already exists"):
            self.task(queue, url, id="waits")
        basic = self.client.get_task(name=task.name)
        check("the basic view has no body", basic.http_request.body, b"")
        full = self.client.get_task(request={"name": task.name, "response_view": tasks_v2.Task.View.FULL})
        check("the full view has it", full.http_request.body, b"secret")
        check("a paused queue sends nothing", "/states" in self.handler.seen, False)
        self.client.run_task(name=task.name)
        self.handler.requests("/states")
        self.gone(task.name)
        print("ok: run sends it, though the queue is paused")
        self.task(queue, url)
        check("resumed", self.client.resume_queue(name=queue).state, RUNNING)
        self.handler.requests("/states", 2)
        print("ok: a resumed queue sends")

    def later(self):
        queue = self.queue("later")
        url = self.handler.answering("/later")
        hour = datetime.timedelta(hours=1)
        at = Timestamp()
        at.FromDatetime(datetime.datetime.now(datetime.UTC) + hour)
        names = [self.task(queue, url, id=f"t{n}", schedule_time=at).name for n in range(5)]
        pages = list(self.client.list_tasks(request={"parent": queue, "page_size": 2}).pages)
        check("tasks come in pages", max(len(page.tasks) for page in pages), 2)
        check("every task is listed once", sorted(t.name for p in pages for t in p.tasks), names)
        self.client.delete_task(name=names[0])
        with refused("a deleted task", NotFound):
            self.client.get_task(name=names[0])
        purged = self.client.purge_queue(name=queue)
        check("the purge has a time", purged.purge_time.timestamp() > 0, True)
        until("purge", lambda: not list(self.client.list_tasks(parent=queue)))
        check("nothing of it was sent", "/later" in self.handler.seen, False)

    def refusals(self):
        queue = f"{LOCATION}/queues/later"
        url = self.handler.answering("/never")
        with refused("a queue that is not there", NotFound, "Queue does not exist"):
            self.task(f"{LOCATION}/queues/none", url)
        with refused("a task without a target", (InvalidArgument, BadRequest), "payload_type is not set"):
            self.client.create_task(parent=queue, task={})
        with refused("a body where none may be", (InvalidArgument, BadRequest), "Body can only be set"):
            self.task(queue, url, request={"http_method": tasks_v2.HttpMethod.GET, "body": b"x"})
        with refused("a deadline too short", (InvalidArgument, BadRequest), "between [15s, 30m]"):
            self.task(queue, url, dispatch_deadline=Duration(seconds=14))
        with refused("a task of another queue", (InvalidArgument, BadRequest), "must be the same"):
            self.client.create_task(
                parent=queue,
                task={"name": f"{LOCATION}/queues/other/tasks/t", "http_request": {"url": url}},
            )


def task_headers(request, *names):
    return [request.headers[f"X-CloudTasks-{name}"] for name in names]


def main():
    program = Program(connect(sys.argv[1], sys.argv[2]))
    for part in (program.queues, program.deliver, program.retry, program.states, program.later, program.refusals):
        part()


if __name__ == "__main__":
    main()
