"""Events as text that is the same in every process, over which a run's hash is made.

A message counts by its bytes on the wire, and a row by its names in their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from minicluster.actors.recording.exchange import Exchange
from minicluster.actors.recording.readable import Event
from minicluster.protocol import encode


def canonical(event: Event) -> str:
    """One event as text that is the same in every process."""
    text = f"{event[0]} {event[1]} {event[2]}"
    for part in event[3:]:
        text += " " + _TEXTS.get(part.__class__, _text)(part)
    return text


def _text(part: Any) -> str:
    if isinstance(part, str | int | float):
        return str(part)
    return _row_text(part) if isinstance(part, Mapping) else json.dumps(part, default=str)


def _body_text(part: tuple[Any, ...]) -> str:
    """The hash of a message, where the tuple is one and its version."""
    if len(part) == 2 and hasattr(part[0], "api_key"):
        return blake2b(encode(part[0], part[1]), digest_size=8).hexdigest()
    return _text(part)


_row_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_TEXTS: Mapping[type, Callable[[Any], str]] = {
    **dict.fromkeys((Exchange, str, int, float, bool, type(None)), str),
    dict: _row_text,
    tuple: _body_text,
}
