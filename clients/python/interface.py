"""Google's own descriptors against what the broker says it serves: `python interface.py HOST:PORT`.

Every method of Google's clients is served or refused, and every field of every request of a served method: what is
refused is sent, over gRPC and over REST, and has to be refused with "not served here"; so is what an update's mask
names."""

import importlib
import inspect
import json
import re
import sys
import urllib.error
import urllib.request

import grpc
from google.protobuf import json_format

from handler import check

TRANSPORTS = [
    "google.pubsub_v1.services.publisher",
    "google.pubsub_v1.services.subscriber",
    "google.pubsub_v1.services.schema_service",
    "google.cloud.tasks_v2.services.cloud_tasks",
    "google.cloud.tasks_v2beta3.services.cloud_tasks",
]
WORDS = "is not served here"
# A field of another package's message is whole: a time, a span, a mask.
WHOLE = ("google.protobuf.", "google.rpc.")
PATIENCE_S = 10


class Method:
    """A method of one of Google's clients."""

    def __init__(self, path, request, kind, rest):
        self.path, self.request, self.kind, self.rest = path, request, kind, rest

    @property
    def full_name(self):
        return self.path.strip("/").replace("/", ".")


def methods():
    """Everything that Google's clients can call, as their own sources have it."""
    found = {}
    for package in TRANSPORTS:
        module = importlib.import_module(f"{package}.transports.grpc")
        source = inspect.getsource(module)
        stubs = re.findall(r'\.(unary_unary|stream_stream)\(\s*"(/[^"]+)",\s*request_serializer=([\w.]+),', source)
        assert len(stubs) == source.count("request_serializer="), f"{package}: not all methods were found"
        for kind, path, serializer in stubs:
            if serializer == "None":
                continue
            message = eval(serializer.rsplit(".", 1)[0], vars(module))
            found.setdefault(path, Method(path, descriptor(message), kind, rest_of(package, path)))
    return found


def descriptor(message):
    pb = message.pb() if hasattr(message, "pb") else message
    return pb.DESCRIPTOR


def rest_of(package, path):
    """How the method is called over REST: the first of its ways."""
    base = importlib.import_module(f"{package}.transports.rest_base")
    [transport] = [value for name, value in vars(base).items() if re.fullmatch(r"_Base\w+RestTransport", name)]
    call = getattr(transport, "_Base" + path.rsplit("/", 1)[1], None)
    options = getattr(call, "_get_http_options", None)
    return options()[0] if options else None


def standings(broker):
    """What the broker says: of each method, and of each field by its message and number."""
    with urllib.request.urlopen(f"http://{broker}/_semel/interface", timeout=PATIENCE_S) as answer:
        services = json.load(answer)["services"]
    methods = {f"/{s['name']}/{m['name']}": m["standing"] for s in services for m in s["methods"]}
    fields = {
        (message["name"], field["number"]): field
        for service in services
        for message in service["messages"]
        for field in message["fields"]
    }
    return methods, fields


def paths(message, before, fields, wrong):
    """Every field of a request, each as the fields that lead to it; what is refused is not entered."""
    for field in message.fields:
        said = fields.get((message.full_name, field.number))
        # proto-plus cannot have a field called type.
        if said is None or said["name"] != field.name.rstrip("_"):
            wrong.append(f"{message.full_name}.{field.name} = {field.number}: the broker says {said}")
            continue
        path = [*before, field]
        yield path, said["standing"]
        inner = field.message_type
        enter = inner and said["standing"] not in ("refused", "output")
        if enter and not inner.full_name.startswith(WHOLE) and not inner.GetOptions().map_entry:
            yield from paths(inner, path, fields, wrong)


def fill(message, path):
    """Sets the field to something that is not nothing."""
    field, *rest = path
    inner = field.message_type
    if inner and inner.GetOptions().map_entry:
        getattr(message, field.name)["key"] = "value"
    elif inner:
        repeated = field.is_repeated
        one = getattr(message, field.name).add() if repeated else getattr(message, field.name)
        one.SetInParent() if not repeated else None
        if rest:
            fill(one, rest)
        elif inner.full_name == "google.protobuf.FieldMask":
            one.paths.append("name")
    else:
        value = "something" if field.type == field.TYPE_STRING else b"x" if field.type == field.TYPE_BYTES else 1
        value = True if field.type == field.TYPE_BOOL else value
        # The last one: the first of a queue's types is PULL, which alone is refused.
        value = field.enum_type.values[-1].number if field.enum_type else value
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)


def request_with(method, path):
    request = method.request._concrete_class()
    fill(request, path)
    return request


def by_grpc(channel, method, request):
    """The code and the words of the refusal; nothing if there is none."""
    whole = request.SerializeToString()
    call = getattr(channel, method.kind)(method.path)
    try:
        if method.kind == "stream_stream":
            list(call(iter([whole]), timeout=PATIENCE_S))
        else:
            call(whole, timeout=PATIENCE_S)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return "OK", ""


def by_rest(broker, method, request, name=None):
    """`name` is what the path names; else something is."""
    way = method.rest
    whole = json_format.MessageToDict(request)
    uri = re.sub(r"\{[^=}]+=([^}]*)\}", lambda found: name or found[1].replace("*", "something"), way["uri"])
    query, body = "", None
    if way.get("body") == "*":
        body = whole
    else:
        body = whole.pop(way["body"], {}) if way.get("body") else None
        query = "?" + "&".join(f"{name}={value}" for name, value in whole.items())
    data = json.dumps(body).encode() if body is not None else None
    asked = urllib.request.Request(f"http://{broker}{uri}{query}", data=data, method=way["method"].upper())
    try:
        urllib.request.urlopen(asked, timeout=PATIENCE_S).close()
    except urllib.error.HTTPError as error:
        said = error.read()
        try:
            said = json.loads(said)["error"]
        except ValueError:
            return str(error.code), said.decode()
        return said["status"], said["message"]
    return "OK", ""


def every_method(broker, channel, google, served):
    unknown = sorted(set(google) - set(served))
    check("every method of Google's clients is in the broker's list", unknown, [])
    check("the broker serves nothing that Google's clients do not have", sorted(set(served) - set(google)), [])
    refused = [method for path, method in google.items() if served[path] == "refused"]
    for method in refused:
        request = method.request._concrete_class()
        answers = [by_grpc(channel, method, request), by_rest(broker, method, request)]
        for code, words in answers:
            assert code == "UNIMPLEMENTED" and WORDS in words, f"{method.path}: {code} {words}"
    assert len(refused) >= 8, refused
    check("methods that are not served are refused by both transports", len(refused) > 0, True)


def every_field(broker, channel, google, served, fields):
    wrong, counted = [], {}
    for path, method in sorted(google.items()):
        if served[path] == "refused":
            continue
        for fields_to, standing in paths(method.request, [], fields, wrong):
            counted[standing] = counted.get(standing, 0) + 1
            request = request_with(method, fields_to)
            name = f"{path} {'.'.join(field.name for field in fields_to)}"
            answers = [by_grpc(channel, method, request)] if standing != "served" or "Pull" not in path else []
            if method.rest and standing == "refused":
                answers.append(by_rest(broker, method, request))
            for code, words in answers:
                is_refused = code == "UNIMPLEMENTED" and WORDS in words
                if is_refused != (standing == "refused"):
                    wrong.append(f"{name} is {standing}: {code} {words}")
    check("each field is served or refused as the list says", wrong, [])
    assert counted["served"] > 300 and counted["refused"] > 25, counted
    check("every field of every request was walked", set(counted), {"served", "kept", "ignored", "output", "refused"})
    print(f"{counted}", flush=True)


def make(channel, google):
    """One of each kind that can be updated, by the full name of its message."""
    queue = "projects/p/locations/l/queues/q"
    names = {
        "google.pubsub.v1.Topic": "projects/p/topics/orders",
        "google.pubsub.v1.Subscription": "projects/p/subscriptions/orders",
        "google.pubsub.v1.Snapshot": "projects/p/snapshots/orders",
        "google.cloud.tasks.v2.Queue": queue,
        "google.cloud.tasks.v2beta3.Queue": queue,
    }
    topic, subscription, snapshot, *_ = names.values()
    for call, request in {
        "google.pubsub.v1.Publisher/CreateTopic": {"name": topic},
        "google.pubsub.v1.Subscriber/CreateSubscription": {"name": subscription, "topic": topic},
        "google.pubsub.v1.Subscriber/CreateSnapshot": {"name": snapshot, "subscription": subscription},
        "google.cloud.tasks.v2.CloudTasks/CreateQueue": {"parent": queue.split("/queues")[0], "queue": {"name": queue}},
    }.items():
        method = google[f"/{call}"]
        check(call, by_grpc(channel, method, method.request._concrete_class(**request))[0], "OK")
    return names


def every_mask(broker, channel, google, served, fields):
    """An update's mask that names what is not served is refused, in both spellings: JSON has the other one."""
    wrong, counted = [], 0
    names = make(channel, google)
    for path, method in sorted(google.items()):
        if served[path] == "refused" or not path.rsplit("/", 1)[1].startswith("Update"):
            continue
        [resource] = [field for field in method.request.fields if field.name != "update_mask"]
        name = names[resource.message_type.full_name]
        for fields_to, standing in paths(resource.message_type, [], fields, wrong):
            if standing != "refused":
                continue
            request = method.request._concrete_class(**{resource.name: {"name": name}})
            request.update_mask.paths.append(".".join(field.name for field in fields_to))
            counted += 1
            for code, words in (by_grpc(channel, method, request), by_rest(broker, method, request, name)):
                if code != "UNIMPLEMENTED" or WORDS not in words:
                    wrong.append(f"{path} {request.update_mask.paths}: {code} {words}")
    check("what is not served is refused in masks", wrong, [])
    assert counted >= 10, counted


def main(broker):
    google = methods()
    served, fields = standings(broker)
    with grpc.insecure_channel(broker) as channel:
        every_method(broker, channel, google, served)
        every_field(broker, channel, google, served, fields)
        every_mask(broker, channel, google, served, fields)


if __name__ == "__main__":
    main(*sys.argv[1:])
