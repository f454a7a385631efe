"""The result of a step with clients, in one line for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minicluster.actors.cluster.client import ProduceOperation
from minicluster.errors import counted

if TYPE_CHECKING:
    from minicluster.clients.transactional_producer import Transaction


def clients_result(result: Any) -> str | None:
    """How much was acknowledged, read, committed or aborted; None for any other result of a step.

    A load in the background has no result yet: its records are rows of the trace.
    """
    if not isinstance(result, Sequence) or not result:
        return None
    if isinstance(result[0], ProduceOperation):
        return _produced(result) if all(operation.done for operation in result) else None
    # Not loaded before the first action of such a client.
    from minicluster.clients.reader import ConsumedRecord
    from minicluster.clients.transactional_producer import Transaction

    if isinstance(result[0], ConsumedRecord):
        return f"{counted(len(result), 'record')} read"
    if isinstance(result[0], Transaction):
        return "; ".join(map(_ended, result)) if all(one.outcome for one in result) else None
    return None


def _produced(operations: Sequence[ProduceOperation]) -> str:
    offsets = [operation.offset for operation in operations if operation.ok]
    known = [offset for offset in offsets if offset is not None and offset >= 0]
    acknowledged = f"{len(offsets)} of {len(operations)} acknowledged{_at(known)}"
    failures = {str(operation.failure) for operation in operations if operation.failure}
    return "; ".join([acknowledged, *sorted(failures)])


def _ended(transaction: Transaction) -> str:
    is_open = transaction.commits is None
    outcome = "the transaction is left open" if is_open else f"{transaction.outcome}"
    if transaction.outcome == "unknown" and not is_open:
        outcome = "nobody knows whether the transaction was committed"
    written = f"{len(transaction.written)} of {len(transaction.records)} acknowledged"
    return f"{written}; {outcome}"


def _at(offsets: Sequence[int]) -> str:
    if not offsets:
        return ""
    first, last = min(offsets), max(offsets)
    return f" at offset {first}" if first == last else f" at offsets {first} to {last}"
