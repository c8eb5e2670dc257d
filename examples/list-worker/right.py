"""Writes orders from a list into the books, once each. Until it is written, an order is on a list of those at work.

What is there when the worker starts, or after a failure, was interrupted and is written now.
"""

import os
import time

import redis

STORE = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
LIST = os.environ["LIST"]

# One script: the order is known, written and off the list, or nothing of it.
WRITE = STORE.register_script(
    """
    if redis.call('SADD', KEYS[1], ARGV[1]) == 1 then
        redis.call('RPUSH', KEYS[2], 'written')
    end
    redis.call('LREM', KEYS[3], 1, ARGV[1])
    """
)


def write(order):
    WRITE(keys=[f"{LIST}:known", f"{LIST}:book:{order}", f"{LIST}:at-work"], args=[order])


def work():
    for order in STORE.lrange(f"{LIST}:at-work", 0, -1):
        write(order)
    while True:
        write(STORE.blmove(f"{LIST}:new", f"{LIST}:at-work", 0))


if __name__ == "__main__":
    while True:
        try:
            work()
        except redis.RedisError as error:
            print(f"failed: {error}", flush=True)
            time.sleep(0.1)
