"""Records as documents of Firestore: what completion and ``once`` write, without any I/O. Times are microseconds since
1970, as in the Rust store; ``vectors/firestore.json`` holds what every language must make of them."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime, timedelta, timezone
from typing import Any, Mapping, Optional, Sequence, Union

from ._errors import Error, Stale

Headers = Mapping[str, Union[str, Sequence[str]]]

RESULT_BYTES_MAX = 900_000
"""A document holds 1 MiB, and the store's own parts of results begin above this."""

_DELETE_AFTER = 86_400_000_000
"""How long after its expiry a TTL policy may delete a record: clocks and retries are long done by then."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_KEY = re.compile(r"v1_[0-9a-f]{64}")
_RUNNING, _SUCCEEDED, _PARKED = 1, 2, 5


class Already(Error):
    """This very run is completed already: an earlier commit of it was written, though its answer may have been lost.
    Write nothing more. Behind a gate the sender hears what was stored, whatever the handler answers now."""


def microseconds(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def outcome(status: int, headers: Headers, body: Union[str, bytes]) -> bytes:
    """What every duplicate hears, as all stores keep it: version, length of the head, head, body."""
    if type(status) is not int or not 100 <= status <= 599:
        raise Error(f"status {status!r} is not one from 100 to 599")
    content = body.encode() if isinstance(body, str) else body
    head: dict[str, Any] = {"status": status, "headers": _kept(headers)}
    result = _framed(head, content)
    if len(result) > RESULT_BYTES_MAX:
        result = _framed({**head, "body": "not-kept"}, b"")
    if len(result) > RESULT_BYTES_MAX:
        raise Error(f"the headers of an outcome take more than {RESULT_BYTES_MAX} bytes")
    return result


def completed(key: str, record: Optional[Mapping[str, Any]], fence: int, result: bytes, now: int) -> dict[str, Any]:
    """The fields that change when the run with this fence succeeds."""
    if not record or record["fence"] != fence or record["state"] not in (_RUNNING, _SUCCEEDED, _PARKED):
        raise Stale(f"{key}: the run with fence {fence} was overtaken, or has failed; it must write nothing")
    if record["state"] == _SUCCEEDED:
        raise Already(f"{key}: the run with fence {fence} is completed already; write nothing more")
    retention = record["expires_at"] - record["lease_until"]
    expires_at = max(record["expires_at"], now + retention)
    return {"state": _SUCCEEDED, "lease_until": now, "result": result, **_expiry(expires_at)}


def once_digest(name: str) -> bytes:
    """The identity of a name. It has a tag of its own, so that it never meets a gate's record."""
    try:
        text = name.encode()
    except UnicodeEncodeError:
        raise Error("the name holds half a surrogate pair, which has no UTF-8") from None
    return hashlib.sha256(b"semel-once-v1" + len(text).to_bytes(8, "big") + text).digest()


def remembered(digest: bytes, record: Optional[Mapping[str, Any]], keep: int, now: int) -> Optional[dict[str, Any]]:
    """The record that remembers a name for so long; nothing when it is remembered already."""
    if record and record["expires_at"] > now:
        return None
    fence = max(now, record["fence"] + 1) if record else now
    return {
        "fp": digest, "owner": bytes(16), "state": _SUCCEEDED, "attempts": 1, "doubts": 0, "in_doubt": False,
        "acts_until": None, "doubted_at": None, "born": fence, "fence": fence, "lease_until": now, "result": None, "label": None,
        **_expiry(now + keep),
    }  # fmt: skip


def checked_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise Error(f"{key!r} is not a key, v1_ and 64 hex digits: pass on the header Semel-Key")
    return key


def checked_fence(fence: Union[int, str]) -> int:
    try:
        return int(fence)
    except ValueError:
        raise Error(f"{fence!r} is not a fence: pass on the header Semel-Fence") from None


def _kept(headers: Headers) -> dict[str, Union[str, list[str]]]:
    """In lower case, sorted as Rust writes them."""
    kept = {name.lower(): value if isinstance(value, str) else list(value) for name, value in headers.items()}
    return {name: kept[name] for name in sorted(kept)}


def _framed(head: dict[str, Any], content: bytes) -> bytes:
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    return b"\x01" + len(text).to_bytes(4, "big") + text + content


def _expiry(expires_at: int) -> dict[str, Any]:
    return {"expires_at": expires_at, "delete_at": _EPOCH + (expires_at + _DELETE_AFTER) * _MICROSECOND}
