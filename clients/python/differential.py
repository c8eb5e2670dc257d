"""The same calls to two Cloud Tasks, which must answer alike: `python differential.py PEER OURS`.

The peer's answers agree with recordings of the real service, so a difference is a mistake, or stands in EXCEPTIONS.
"""

import concurrent.futures
import json
import re
import sys

import requests
from google.api_core.exceptions import GoogleAPICallError
from google.protobuf.json_format import MessageToDict

import calls
from handler import Handler, until
from tasks import connect

# The label of a call, and the line of the contract that lets it differ, or what no recording of the real service shows.
EXCEPTIONS = {
    "rest: get (basic|full)": '"Enums arrive as ints […]; parser must accept both spellings": the peer refuses them in the query',
    r"grpc: \w+_queue projects/grpc/locations/here/queues/": '"queue id `[A-Za-z0-9-]{1,100}`": an empty one; the peer misses a permission',
    r"rest: \w+_queue \S+/queues/with space": '"queue id `[A-Za-z0-9-]{1,100}`": the peer does not decode the path it complains of',
    ".*: list queues, state: PAUSED AND state: RUNNING": '"page max 1000 / 9800; page token 2 h": nothing is said of an empty page',
    ".*: create task for https://e.com/x+": '"URL ≤ 2083 chars": the peer takes more',
    "rest: task, (wrong base64|wrong time|wrong duration|no JSON)": '"REST errors […] 400 INVALID_ARGUMENT": the words are those of each JSON library',
}

# Of a delivery, these belong to the HTTP library, and the address to the machine.
NOT_COMPARED = {"host", "content-length", "connection", "accept", "accept-encoding", "transfer-encoding", "referer"}

VOLATILE = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"(?<![\d.])\d{15,20}(?![\d.])"), "ID"),
    (re.compile(r"\b1[789]\d{8}(\.\d{1,9})?\b"), "SECONDS"),
    (re.compile(r"Bearer ey[\w.-]+"), "Bearer JWT"),
    (re.compile(r"Bearer (?!JWT)\S+"), "Bearer OPAQUE"),
]


class Side:
    """One of the two: makes calls over one transport, and writes down what was answered."""

    def __init__(self, broker, transport):
        self.broker, self.transport = broker, transport
        self.location = f"projects/{transport}/locations/here"
        self.client = connect(broker, transport)
        self.handler = Handler()
        self.log = []

    def call(self, label, method, **request):
        """Calls through Google's client, writes the answer down and returns it; nothing when it was refused."""
        call = getattr(self.client, method)
        try:
            answer = call(request=request, retry=None)
        except GoogleAPICallError as error:
            status = error.grpc_status_code.name if self.transport == "grpc" else error.code
            self.note(label, ["refused", str(status), error.message])
            return None
        except ValueError as error:
            # Google's client has no path for such a name.
            self.note(label, ["not sent", str(error).splitlines()[0]])
            return None
        if hasattr(answer, "pages"):
            answer = next(answer.pages)
        known = MessageToDict(type(answer).pb(answer)) if answer is not None else {}
        if known.get("nextPageToken"):
            known["nextPageToken"] = "TOKEN"
        self.note(label, known)
        return answer

    def raw(self, label, method, path, body=None, **headers):
        """Calls by plain HTTP; the body is text, or becomes JSON."""
        body = body if body is None or isinstance(body, str) else json.dumps(body)
        url = f"http://{self.broker}{path.format(location=self.location)}"
        answer = requests.request(method, url, data=body, headers=headers, timeout=30)
        kind = answer.headers.get("Content-Type", "").lower()
        shown = answer.json() if "json" in kind else f"{len(answer.content) > 0} {kind}"
        self.note(label, [answer.status_code, shown])

    def deliveries(self, label, path, count=1):
        """Waits for deliveries and writes them down."""
        for number, seen in enumerate(self.handler.requests(path, count)):
            headers = {name.lower(): value for name, value in seen.headers.items()}
            headers = {name: value for name, value in sorted(headers.items()) if name not in NOT_COMPARED}
            self.note(f"{label}, delivery {number + 1}", [seen.method, seen.path, seen.body.decode("latin1"), headers])

    def until_attempted(self, name):
        """Waits until an attempt has ended and is on record."""
        until(f"attempt of {name}", lambda: self.client.get_task(name=name).last_attempt.response_time)

    def until_gone(self, name):
        def asked():
            try:
                return not self.client.get_task(name=name)
            except GoogleAPICallError as error:
                return error.code == 404

        until(f"end of {name}", asked)

    def note(self, label, seen):
        text = json.dumps(seen, sort_keys=True, ensure_ascii=False)
        text = text.replace(self.handler.root, "http://HANDLER").replace(self.broker, "BROKER")
        text = text.replace(self.handler.root.rsplit(":", 1)[1], "PORT")
        for pattern, word in VOLATILE:
            text = pattern.sub(word, text)
        self.log.append((f"{self.transport}: {label}", text))


def play(broker, transport):
    side = Side(broker, transport)
    for part in calls.PARTS:
        part(side)
    if transport == "rest":
        calls.plain(side)
    return side.log


def main():
    brokers = sys.argv[1:3]
    different = compared = 0
    with concurrent.futures.ThreadPoolExecutor() as threads:
        logs = {
            (broker, transport): threads.submit(play, broker, transport)
            for broker in brokers
            for transport in ("grpc", "rest")
        }
    for transport in ("grpc", "rest"):
        peer, ours = (logs[broker, transport].result() for broker in brokers)
        assert [label for label, _ in peer] == [label for label, _ in ours], "not the same calls were made"
        for (label, theirs), (_, own) in zip(peer, ours):
            compared += 1
            if theirs == own:
                continue
            reason = next((why for which, why in EXCEPTIONS.items() if re.fullmatch(which, label)), None)
            different += reason is None
            print(f"{'allowed: ' + reason if reason else 'DIFFERENT'}: {label}\n  peer: {theirs}\n  ours: {own}")
    print(f"{compared} answers and deliveries compared, {different} different without a reason")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
