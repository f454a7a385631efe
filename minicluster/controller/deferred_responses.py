"""The responses that wait until the records before them are stable.

**Invariant:** a response leaves no earlier than everything that its decision has seen is committed,
so that nothing a client has seen is lost with the controller (E40).

Source:  DeferredEventQueue, ControllerWriteEvent.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from minicluster.controller.state.cluster_state import ClusterState
from minicluster.planting import step
from minicluster.values import Value


class DeferredResponse(Value, kw_only=True):
    """A response, and the offset below which everything must be stable before it leaves.

    Shapes:  records_written are the offsets of the request's own records.
    Units:   registered_epoch as in ``ControllerRespond``.
    """

    end_offset: int
    token: Any
    request: Any
    version: int
    response: Any
    records_written: tuple[int, ...]
    registered_epoch: int | None


class DeferredResponses:
    """The responses that wait, in the order of their offsets."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[DeferredResponse] = deque()

    def add(self, entry: DeferredResponse) -> None:
        """Add a response behind all others."""
        self._waiting.append(entry)

    def complete_up_to(self, stable_end: int) -> list[DeferredResponse]:
        """Take the responses that may leave now that everything below the offset is stable."""
        # From the front alone: offsets ascend in the order of decisions, and so do what they wait
        # for. A response that overtook an earlier one could show a client a later state first.
        completed = []
        while self._waiting and self._waiting[0].end_offset <= stable_end:
            completed.append(self._waiting.popleft())
        return completed

    def take_all(self) -> list[DeferredResponse]:
        """Take all responses: the controller is not active any more."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


@step
def may_respond(state: ClusterState, end_offset: int, stable_end: int) -> bool:
    """True once everything that a response depends on is stable."""
    return end_offset <= stable_end
