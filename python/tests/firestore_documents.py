"""Documents of ``vectors/firestore.json`` as Firestore has them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Mapping, Optional

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors" / "firestore.json").read_text())

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def as_document(fields: Optional[Mapping[str, Any]]) -> Optional[dict[str, Any]]:
    return None if fields is None else {name: _value(value) for name, value in fields.items()}


def _value(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    return bytes.fromhex(written["bytes"]) if "bytes" in written else _EPOCH + timedelta(microseconds=written["micros"])
