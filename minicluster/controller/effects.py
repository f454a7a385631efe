"""The effects of the controller machine, beside timers and ``FaultHit``."""

from __future__ import annotations

from typing import Any

from minicluster.controller.errors import Refusal, Rejected
from minicluster.effects import Effect, Respond
from minicluster.protocol.records import VersionedRecord


class Append(Effect):
    """Append these records in this epoch, as one batch.

    They are applied already, from base_offset on: if the log puts them elsewhere, or rejects them,
    the machine must renounce.
    """

    epoch: int
    base_offset: int
    records: tuple[VersionedRecord, ...]


class RaiseKRaftVersion(Effect):
    """Let the quorum write kraft.version and the voters: two control records, next in the log."""

    epoch: int
    version: int


class Resign(Effect):
    """Resign as the leader of this epoch: the machine is not active any more."""

    epoch: int
    reason: str


class TaskFailed(Effect):
    """Report a fault in a periodic task, which runs again later."""

    task: str
    reason: str


class ReportRefusal(Effect):
    """Log a refusal with its reason, and trace it.

    Shapes:  token and request are None where no request waits for the decision (KIP-497).
    """

    token: Any
    request: Any
    refusal: Refusal


def report_rejected(token: Any, request: Any, rejected: Rejected) -> list[Effect]:
    """The report of a rejected request; none where the refusal has no reason of its own."""
    if rejected.reason is None:
        return []
    refusal = Refusal(error=rejected.error, reason=rejected.reason, message=rejected.message or "")
    return [ReportRefusal(token, request, refusal)]


class ControllerRespond(Respond):
    """A response, with what the trace of requests shows of it.

    Shapes:  records_written are the offsets of the request's own records.
    Units:   high_watermark is the end of what was committed when the response left;
             registered_epoch is the epoch that the request's broker had when it was handled, -1 if
             it had none, and None for requests of clients.
    """

    records_written: tuple[int, ...] = ()
    high_watermark: int = -1
    registered_epoch: int | None = None
