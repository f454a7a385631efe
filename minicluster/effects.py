"""Effects: the actions that a machine requests of its shell.

A machine takes an input and the time and returns a list of these. Rooms add effects of their own
beside their machines; the ones here are understood by every shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, dataclass_transform

from msgspec import Struct


@dataclass_transform(frozen_default=True)
class Effect(Struct, frozen=True):
    """The base of all effects."""


class Send(Effect):
    """Send a request; the response, or its absence, comes back under the correlation id."""

    to: int
    request: Any
    version: int
    correlation_id: int
    timeout_ms: int | None = None


class Forward(Send):
    """Send a client's request in the client's name (KIP-590).

    Shapes:  client: the token of the request as it came in.
    """

    client: Any = None


class Respond(Effect):
    """Respond to the request that came in with this token."""

    token: Any
    response: Any


class SetTimer(Effect):
    """Wake the machine at a time; a timer of the same name is replaced."""

    name: str
    at_ms: int


class CancelTimer(Effect):
    """Forget the timer of this name, if there is one."""

    name: str


class Trace(Effect):
    """Leave a row in the event trace (tables in ``minicluster.trace``)."""

    table: str
    row: Mapping[str, Any]


class FaultHit(Effect):
    """A planted fault (``minicluster.faults``) changed what the machine did."""

    fault: str
