"""Writes orders from a list into the books, once each. WRONG: an order is taken off the list before it is written.

Killed in between, the order is nowhere: not on the list, not in the books, and its sender was told of a success.
"""

import os
import time

import redis

STORE = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
LIST = os.environ["LIST"]

# One script: the order is known and written, or neither.
WRITE = STORE.register_script(
    """
    if redis.call('SADD', KEYS[1], ARGV[1]) == 1 then
        redis.call('RPUSH', KEYS[2], 'written')
    end
    """
)


def work():
    _, order = STORE.blpop(f"{LIST}:new")
    WRITE(keys=[f"{LIST}:known", f"{LIST}:book:{order}"], args=[order])


if __name__ == "__main__":
    while True:
        try:
            work()
        except redis.RedisError as error:
            print(f"failed: {error}", flush=True)
            time.sleep(0.1)
