"""The calls that differential.py makes, good ones and bad ones."""

import datetime

from google.cloud import tasks_v2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

FULL = tasks_v2.Task.View.FULL
METHODS = tasks_v2.HttpMethod
QUICK = {"min_backoff": Duration(nanos=20_000_000), "max_backoff": Duration(nanos=50_000_000)}
# After one attempt there is time to look at it.
SLOW = {"min_backoff": Duration(seconds=600), "max_backoff": Duration(seconds=600)}
SOMEWHERE = "https://example.com/work"
EMAIL = "worker@shop.iam.gserviceaccount.com"


def seconds(whole, nanos=0):
    return Duration(seconds=whole, nanos=nanos)


def queue(side, short, **fields):
    name = f"{side.location}/queues/{short}"
    side.call(f"create queue {short}", "create_queue", parent=side.location, queue={"name": name, **fields})
    return name


def task(side, label, parent, *, id=None, view=0, request=None, **fields):
    wanted = {"http_request": {"url": SOMEWHERE, **(request or {})}, **fields}
    if id:
        wanted["name"] = f"{parent}/tasks/{id}"
    return side.call(f"create task {label}", "create_task", parent=parent, task=wanted, response_view=view)


def later(hours=1):
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)


def queue_names(side):
    queues = f"{side.location}/queues"
    names = ["", "q", f"{queues}/", f"{queues}/under_score", f"{queues}/{'q' * 100}", f"{queues}/{'q' * 101}"]
    names += [f"{queues}/dot.dot", f"{queues}/with space", f"{queues}/q/tasks/t", "projects/p/queues/q"]
    for name in names:
        side.call(f"create queue named {name[:90]}", "create_queue", parent=side.location, queue={"name": name})
        for method in ("get_queue", "delete_queue", "pause_queue", "resume_queue", "purge_queue"):
            side.call(f"{method} {name[:90]}", method, name=name)
    other = {"name": "projects/else/locations/here/queues/q"}
    side.call("create queue in another project", "create_queue", parent=side.location, queue=other)


def queue_settings(side):
    limits = [{"max_dispatches_per_second": rate} for rate in (0.5, 54, 77, 333, 500, 501, -1, 0)]
    limits += [{"max_concurrent_dispatches": count} for count in (1, 5000, 5001, -1)]
    for number, limit in enumerate(limits):
        queue(side, f"limits-{number}", rate_limits=limit)
    retries = [{"max_attempts": count} for count in (-2, -1, 0, 1)] + [{"max_doublings": -1}]
    retries += [{"min_backoff": seconds(-1)}, {"max_backoff": seconds(-1)}, {"max_retry_duration": seconds(-1)}]
    retries += [{"max_retry_duration": seconds(30, 5)}, {"min_backoff": seconds(5), "max_backoff": seconds(4)}]
    retries += [{"min_backoff": seconds(0, 123_456_789)}, {"max_retry_duration": seconds(30)}]
    for number, retry in enumerate(retries):
        queue(side, f"retries-{number}", retry_config=retry)
    queue(side, "defaults")
    queue(side, "defaults")


def queue_updates(side):
    name = queue(side, "updated", retry_config={"max_attempts": 7})
    masks = ["rate_limits.max_dispatches_per_second", "rate_limits", "retry_config.max_attempts", "state", "name"]
    masks += ["bogus", "rate_limits.bogus", "rate_limits.max_burst_size", "retry_config", "purge_time"]
    for mask in masks:
        wanted = {"name": name, "rate_limits": {"max_dispatches_per_second": 7}, "retry_config": {"max_attempts": 3}}
        side.call(f"update {mask}", "update_queue", queue=wanted, update_mask=FieldMask(paths=[mask]))
    side.call("update with an empty mask", "update_queue", queue={"name": name}, update_mask=FieldMask())
    side.call("update without a mask", "update_queue", queue={"name": name})
    side.call("update what is missing", "update_queue", queue={"name": f"{side.location}/queues/upserted"})
    side.call("get what was missing", "get_queue", name=f"{side.location}/queues/upserted")


def queue_lists(side):
    side.call("list queues", "list_queues", parent=side.location)
    for size in (1, 9800, 9801, -1):
        side.call(f"list queues by {size}", "list_queues", parent=side.location, page_size=size)
    side.call("list with a wrong token", "list_queues", parent=side.location, page_token="wrong")
    side.call("list a wrong parent", "list_queues", parent="projects/p/locations/")
    side.call("pause", "pause_queue", name=f"{side.location}/queues/defaults")
    filters = ["state: PAUSED", "state = PAUSED", "NOT state: PAUSED", "state: BOGUS", "bogus: x", "name: updated"]
    filters += ["state: PAUSED OR state: RUNNING", "state: PAUSED AND state: RUNNING"]
    for one in filters:
        side.call(f"list queues, {one}", "list_queues", parent=side.location, filter=one)
    for size in (1, 1000, 1001, -1):
        side.call(f"list tasks by {size}", "list_tasks", parent=f"{side.location}/queues/defaults", page_size=size)
    side.call("list tasks of no queue", "list_tasks", parent=f"{side.location}/queues/none")


def tasks(side):
    name = queue(side, "tasks")
    side.call("pause tasks", "pause_queue", name=name)
    ids = ["plain", "under_score-and-dash", "t" * 500, "t" * 501, "dot.dot", "with space"]
    for id in ids:
        task(side, f"named {id[:30]}, {len(id)}", name, id=id)
    task(side, "twice", name, id="plain")
    task(side, "unnamed", name)
    task(side, "in another queue", name, name=f"{side.location}/queues/else/tasks/t")
    task(side, "without a queue", f"{side.location}/queues/none")
    side.call("create task without a target", "create_task", parent=name, task={})
    for url in ("", "no url", "ftp://example.com", "http://", "http://127.0.0.1/x?y#z", "https://e.com/" + "x" * 2083):
        task(side, f"for {url[:30]}", name, request={"url": url})
    for method in METHODS:
        for body in (b"", b"x"):
            task(side, f"{method.name} {body}", name, view=FULL, request={"http_method": method, "body": body})
    headers = [{"X-CloudTasks-TaskName": "mine"}, {"Host": "h"}, {"User-Agent": "u"}, {"Content-Length": "5"}]
    headers += [{"X-Google-Thing": "x"}, {"Authorization": "Basic x"}, {"bad name": "x"}, {"": "x"}, {"X-A": "é"}]
    for header in headers:
        task(side, f"with {header}", name, view=FULL, request={"headers": header})
    for deadline in (seconds(14), seconds(15), seconds(1800), seconds(1801), seconds(20, 123_456_789), seconds(0)):
        label = f"deadline {deadline.seconds}.{deadline.nanos}"
        task(side, label, name, dispatch_deadline=deadline)
    for hours in (-1, 719, 721):
        task(side, f"in {hours} hours", name, schedule_time=later(hours))
    task(side, "too large", name, request={"http_method": METHODS.POST, "body": b"x" * (1 << 20)})
    for short, view in (("basic", 1), ("full", 2), ("none", 0)):
        side.call(f"get {short}", "get_task", name=f"{name}/tasks/plain", response_view=view)
    task(side, "with retries of its own", name, retry_config={"max_attempts": 3, "min_backoff": seconds(2)})


def tokens(side):
    name = queue(side, "tokens")
    side.call("pause tokens", "pause_queue", name=name)
    for token in ({"service_account_email": EMAIL}, {"service_account_email": ""}, {"audience": "a"}):
        task(side, f"oidc {token}", name, view=FULL, request={"oidc_token": token})
    for host in ("example.com", "pubsub.googleapis.com", "fakegoogleapis.com"):
        token = {"oauth_token": {"service_account_email": EMAIL}, "url": f"https://{host}/x"}
        task(side, f"oauth for {host}", name, view=FULL, request=token)


def ends(side):
    name = queue(side, "ends")
    for method in ("pause_queue", "pause_queue", "resume_queue", "resume_queue"):
        side.call(method, method, name=name)
    at = later()
    for id in ("deleted", "purged"):
        task(side, id, name, id=id, schedule_time=at)
    for method in ("delete_task", "delete_task", "get_task", "run_task"):
        side.call(f"{method} deleted", method, name=f"{name}/tasks/deleted")
        side.call(f"{method} never there", method, name=f"{name}/tasks/never")
    task(side, "deleted before", name, id="deleted", schedule_time=at)
    side.call("purge", "purge_queue", name=name)
    task(side, "purged before", name, id="purged", schedule_time=at)
    side.call("list after purge", "list_tasks", parent=name)
    for method in ("delete_queue", "delete_queue", "get_queue", "pause_queue", "purge_queue"):
        side.call(f"{method} at the end", method, name=name)
    queue(side, "ends")
    task(side, "in a deleted queue", name)
    side.call("update a deleted queue", "update_queue", queue={"name": name})


def deliveries(side):
    name = queue(side, "deliveries", retry_config=QUICK)
    url = side.handler.answering("/plain")
    headers = {"Content-Type": "text/plain", "X-CloudTasks-QueueName": "mine", "User-Agent": "mine", "X-Own": "1"}
    request = {"url": url + "?a=b%20c#d", "headers": headers, "body": b"body", "http_method": METHODS.PUT}
    task(side, "delivered", name, id="delivered", request=request)
    side.deliveries("plain", "/plain")
    side.until_gone(f"{name}/tasks/delivered")
    task(side, "delivered before", name, id="delivered")
    side.call("get delivered", "get_task", name=f"{name}/tasks/delivered")
    url = side.handler.answering("/retried", 503, 404, 429, 500, 302, 200)
    task(side, "retried", name, id="retried", request={"url": url, "body": b"again"})
    side.deliveries("retried", "/retried", 6)
    url = side.handler.answering("/moved", (302, {"Location": side.handler.answering("/there")}))
    task(side, "moved", name, id="moved", request={"url": url, "body": b"moved"})
    side.deliveries("moved", "/there")
    url = side.handler.answering("/token")
    task(side, "with a token", name, id="token", request={"url": url, "oidc_token": {"service_account_email": EMAIL}})
    side.deliveries("token", "/token")
    few = queue(side, "few", retry_config={**QUICK, "max_attempts": 3})
    url = side.handler.answering("/few", 500)
    task(side, "few", few, id="few", request={"url": url})
    side.until_gone(f"{few}/tasks/few")
    side.deliveries("few", "/few", 3)
    task(side, "exhausted before", few, id="few")


def statuses(side):
    # A queue each: some of these answers slow their queue down.
    for status in (301, 304, 400, 401, 403, 404, 405, 409, 410, 418, 429, 500, 501, 502, 503, 504, 505, 507):
        name = queue(side, f"status-{status}", retry_config=SLOW)
        url = side.handler.answering(f"/status-{status}", status)
        task(side, f"answered {status}", name, id="t", request={"url": url})
        side.until_attempted(f"{name}/tasks/t")
        side.call(f"get answered {status}", "get_task", name=f"{name}/tasks/t")
    name = queue(side, "unreachable", retry_config=SLOW)
    task(side, "to nobody", name, id="t", request={"url": "http://127.0.0.1:1/"})
    side.until_attempted(f"{name}/tasks/t")
    side.call("get to nobody", "get_task", name=f"{name}/tasks/t")
    name = queue(side, "run", retry_config=SLOW)
    task(side, "to run", name, id="t", schedule_time=later(), request={"url": side.handler.answering("/run", 500)})
    side.call("pause run", "pause_queue", name=name)
    side.call("run", "run_task", name=f"{name}/tasks/t")
    side.deliveries("run", "/run")
    side.until_attempted(f"{name}/tasks/t")
    side.call("get run", "get_task", name=f"{name}/tasks/t")


def plain(side):
    """What Google's clients never send, but curl does."""
    at, task = "/v2/{location}/queues", {"httpRequest": {"url": SOMEWHERE}}
    side.raw("create", "POST", at, {"name": f"{side.location}/queues/plain"})
    side.raw("pause", "POST", at + "/plain:pause", {})
    side.raw("pause, no body", "POST", at + "/plain:pause")
    for label, body in {
        "unknown field": {"task": task, "bogus": 1},
        "unknown fields inside": {"task": {"httpRequest": {"url": SOMEWHERE, "bogus": 1, "other": 2}}},
        "number for a name": {"task": {**task, "name": 5}},
        "enum by name": {"task": {"httpRequest": {"url": SOMEWHERE, "httpMethod": "PUT"}}, "responseView": "FULL"},
        "enum by number": {"task": {"httpRequest": {"url": SOMEWHERE, "httpMethod": 4}}, "responseView": 2},
        "enum unknown": {"task": task, "responseView": "NOPE"},
        "wrong base64": {"task": {"httpRequest": {"url": SOMEWHERE, "body": "!"}}},
        "snake case": {"task": {"http_request": {"url": SOMEWHERE}}},
        "wrong time": {"task": {**task, "scheduleTime": "tomorrow"}},
        "wrong duration": {"task": {**task, "dispatchDeadline": "1 minute"}},
        "array": [],
        "no JSON": "{",
        "empty": {},
    }.items():
        side.raw(f"task, {label}", "POST", at + "/plain/tasks", body)
    side.raw("int enums", "GET", at + "/plain?$alt=json;enum-encoding=int")
    side.raw("unknown alt", "GET", at + "/plain?alt=xml")
    side.raw("unknown parameter", "GET", at + "/plain?bogus=1")
    side.raw("page size no number", "GET", at + "?pageSize=abc")
    named = {"name": f"{side.location}/queues/plain/tasks/named", "httpRequest": {"url": SOMEWHERE, "body": "eA=="}}
    side.raw("task, named", "POST", at + "/plain/tasks", {"task": named})
    side.raw("view by name", "GET", at + "/plain/tasks/named?responseView=FULL")
    side.raw("view unknown", "GET", at + "/plain/tasks?responseView=NOPE")
    changed = {"retryConfig": {"maxAttempts": 9}}
    side.raw("mask in camel case", "PATCH", at + "/plain?updateMask=retryConfig.maxAttempts", changed)
    side.raw("no such verb", "POST", at + "/plain:bogus", {})
    side.raw("no such path", "GET", "/v2/bogus")
    side.raw("wrong method", "PUT", at + "/plain", {})
    side.raw("missing queue", "GET", at + "/missing")
    side.raw("delete", "DELETE", at + "/plain")
    side.raw("delete again", "DELETE", at + "/plain")


PARTS = (queue_names, queue_settings, queue_updates, queue_lists, tasks, tokens, ends, deliveries, statuses)
