"""What is accepted survives the broker's end: `python survive.py HOST:PORT FILE`.

Creates tasks and publishes messages while somebody kills the broker and starts it again, until FILE is there; prints a
line for each pair that was accepted. Then all of these must come.
"""

import itertools
import json
import os
import sys

from requests.exceptions import RequestException

from bus import Bus
from handler import Handler, check, until
from tasks import Program, connect


def accept(program, bus, queues, topic, url, enough):
    """The names of the tasks and the ids of the messages that the broker said it has."""
    tasks, messages = set(), set()
    for number in itertools.count():
        if os.path.exists(enough):
            return tasks, messages
        try:
            name = program.task(queues[number % 2], url, id=f"task-{number}").name
        except RequestException:
            # It may be there or not; nobody was told, so nobody may complain.
            continue
        tasks.add(name.split("/")[-1])
        messages.update(bus.publish(topic, b"message %d" % number))
        print(f"accepted {number}", flush=True)


def main():
    broker, enough = sys.argv[1:3]
    program, bus, handler = Program(connect(broker, "rest")), Bus(broker), Handler()
    # One queue sends at once, the other only at the end.
    busy, paused = program.queue("busy"), program.queue("paused")
    program.client.pause_queue(name=paused)
    topic, pulled = bus.both("kept")
    bus.subscription("pushed", topic, push_config={"push_endpoint": handler.answering("/pushed")})

    tasks, messages = accept(program, bus, [busy, paused], topic, handler.answering("/tasks"), enough)
    check("the broker accepted some", len(tasks) > 0 and len(messages) > 0, True)

    program.client.resume_queue(name=paused)
    until("every task", lambda: tasks <= {one.headers["X-CloudTasks-TaskName"] for one in handler.requests("/tasks")})
    print(f"ok: every accepted task was delivered, {len(tasks)} of them")

    def pushed():
        return {json.loads(one.body)["message"]["messageId"] for one in handler.requests("/pushed")}

    until("every push", lambda: messages <= pushed())
    print(f"ok: every accepted message was pushed, {len(messages)} of them")
    left = set(messages)
    while left:
        received = bus.pull_all(pulled, 1)
        bus.ack(pulled, received)
        left -= {one.message.message_id for one in received}
    print("ok: every accepted message was pulled")


if __name__ == "__main__":
    main()
