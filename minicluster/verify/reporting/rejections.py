"""The rejections of the controllers of a run, from its trace; the same again is counted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from minicluster.values import Value
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.trace_tables import trace_rows

AGAIN_MS = 10_000  # the same rejection after a longer while is another one
_ALIKE = ("node", "api", "broker", "topic", "part", "error", "reason")


class Rejection(Value, kw_only=True):
    """A request of a broker, or one partition of it, that a controller has rejected.

    Shapes:  count: how often, from at_ms to until_ms; isr: what an AlterPartition asked for;
             broker, topic: None where the request names none; message: the sentence of Kafka's log.
    """

    at_ms: int
    until_ms: int
    count: int
    controller: int
    api: str
    broker: int | None
    topic: str | None
    partition: int | None
    error: str
    reason: str
    message: str
    isr: tuple[int, ...] | None


def rejections_of(run: Run) -> list[Rejection]:
    """The rejections of a run in the order of the first of each."""
    columns = "seq vt node rpc api broker topic part error reason message"
    rows = trace_rows(run, "refusal", columns)
    asked = _proposals(run, rows)
    last: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    alike = []
    for row in rows:
        isr = asked.get((row["rpc"], row["part"]))
        key = *(row[name] for name in _ALIKE), isr
        group = last.get(key)
        if group is None or row["vt"] - group[-1]["vt"] > AGAIN_MS:
            group = last[key] = []
            alike.append((group, isr))
        group.append(row)
    return [_rejection(group, isr) for group, isr in alike]


def _rejection(group: Sequence[Mapping[str, Any]], isr: tuple[int, ...] | None) -> Rejection:
    first = group[0]
    return Rejection(
        at_ms=first["vt"], until_ms=group[-1]["vt"], count=len(group), controller=first["node"],
        api=first["api"] or "a request", broker=first["broker"], topic=first["topic"],
        partition=first["part"], error=first["error"], reason=first["reason"],
        message=first["message"] or "", isr=isr,
    )  # fmt: skip


def _proposals(
    run: Run, rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[int, int], tuple[int, ...]]:
    """The ISRs that the rejected AlterPartitions asked for, by request and partition.

    A request has ids in place of the names of topics: where it is about the same partition of
    several, which of them a rejection means is left open.
    """
    wanted = [row["rpc"] for row in rows if row["api"] == "AlterPartition"]
    proposed: dict[tuple[int, int], tuple[int, ...]] = {}
    several = set()
    asked = trace_rows(run, "rpc", "seq id request", pc.field("id").isin(wanted)) if wanted else ()
    for row in asked:
        for partition, isr in _proposed(row["request"]):
            key = row["id"], partition
            several |= {key} & proposed.keys()
            proposed[key] = isr
    return {key: isr for key, isr in proposed.items() if key not in several}


def _proposed(request: str) -> list[tuple[int, tuple[int, ...]]]:
    """The partitions of an AlterPartition with their ISRs; none of one whose text is damaged."""
    try:
        return [
            (
                partition["partitionIndex"],
                tuple(
                    partition.get("newIsr")
                    or (member["brokerId"] for member in partition["newIsrWithEpochs"])
                ),
            )
            for topic in json.loads(request)["topics"]
            for partition in topic["partitions"]
        ]
    except (ValueError, LookupError, TypeError, AttributeError):
        return []
