"""Requests that a node handles in slices: other clients' requests come between.

    inbox ──▶ first slice ─▶ (what has come meanwhile) ─▶ next slice ─▶ … ─▶ one response

A machine knows nothing of it: each slice is a request to it, with a token of its own.
"""

from __future__ import annotations

from typing import Any

from minicluster.actors.links import Packet
from minicluster.protocol.slices import Sliced


class Slice(Packet):
    """A part of a large request, and the token of its response."""

    __slots__ = ("number", "whole")

    def __init__(self, whole: LargeRequest, number: int, body: Any) -> None:
        super().__init__(whole.packet.exchange, body, False)
        self.whole = whole
        self.number = number


class LargeRequest:
    """A request with the slices that are still to be handled, and the responses so far."""

    __slots__ = ("_bodies", "_handled", "_responses", "_sliced", "packet")

    def __init__(self, packet: Packet, sliced: Sliced) -> None:
        self.packet = packet
        self._sliced = sliced
        self._bodies = list(sliced.cut(packet.body))
        self._handled = 0
        # A slice may get its response long after the next one, such as a Produce with acks=all.
        self._responses: list[Any] = [_NONE_YET] * len(self._bodies)

    def __bool__(self) -> bool:
        """True while slices are still to be handled."""
        return self._handled < len(self._bodies)

    def next_slice(self) -> Slice:
        """The next part."""
        part = Slice(self, self._handled, self._bodies[self._handled])
        self._handled += 1
        return part

    def responded(self, part: Slice, response: Any) -> bool:
        """Take the response to a part; True once each has one."""
        self._responses[part.number] = response
        return _NONE_YET not in self._responses

    def response(self) -> Any:
        """The response to the whole request."""
        return self._sliced.join(self._responses)


_NONE_YET = object()
