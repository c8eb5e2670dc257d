"""Redis without a package."""

import os
import socket
import urllib.parse


def redis(*words):
    """One command on a connection of its own; the first line of its reply."""
    url = urllib.parse.urlparse(os.environ["REDIS_URL"])
    with socket.create_connection((url.hostname, url.port)) as wire:
        parts = [f"*{len(words)}"] + [line for word in words for line in (f"${len(word)}", word)]
        wire.sendall("\r\n".join(parts + [""]).encode())
        return wire.recv(4096).split(b"\r\n")[0]
