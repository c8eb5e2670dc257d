"""A delivery as a letter keeps it, in the gate's own form: byte 1, the length of a JSON head, the head, the body. So
``semel letters list`` and ``show`` read these, too."""

from __future__ import annotations

import json
import struct
from typing import Any

from ._errors import Error

_VERSION = 1


def pack(route: str, path: str, headers: dict[str, str], why: str, body: bytes) -> bytes:
    """The bytes that a store keeps."""
    head = {"route": route, "method": "POST", "path": path, "headers": list(headers.items()), "why": why}
    written = json.dumps(head).encode()
    return struct.pack(">BI", _VERSION, len(written)) + written + body


def unpack(delivery: bytes) -> tuple[dict[str, Any], bytes]:
    """The head (its headers by name) and the body."""
    version, length = struct.unpack_from(">BI", delivery)
    if version != _VERSION:
        raise Error("a letter has a version that this release does not read; it is left as it is")
    head = json.loads(delivery[5 : 5 + length])
    head["headers"] = dict(head["headers"])
    return head, delivery[5 + length :]
