"""The end of a step in one line for a person: the nodes that it named, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.cluster.views import Partition, Topic
from minicluster.actors.play.performer import Outcome
from minicluster.actors.play.results import clients_result
from minicluster.errors import counted
from minicluster.protocol import ErrorCode
from minicluster.scenario import Step

TEXT_MAX = 1_000  # characters
PARTITIONS_SHOWN = 10


def outcome_text(cluster: RunningCluster, step: Step, outcome: Outcome, since: int) -> str:
    """A performed step in one line.

    Shapes:  since: the number of the last event before the step.
    """
    events = list(_came(cluster, step, outcome, since))
    return shortened(": ".join([step.text, "; ".join(events)]) if events else step.text)


def shortened(text: str) -> str:
    """A text in one line of a bounded length."""
    line = "; ".join(part.strip() for part in text.splitlines())
    line = line.replace(", but; ", ", but ")  # that sentence continues in the next line
    return line if len(line) <= TEXT_MAX else f"{line[: TEXT_MAX - 1]}…"


def _came(cluster: RunningCluster, step: Step, outcome: Outcome, since: int) -> Iterator[str]:
    if step.action is None:
        yield "it holds"
        return
    if outcome.note is not None:
        yield outcome.note
        return
    clients = cluster.client_nodes.known
    for name, value in outcome.resolved.items():
        yield f"{name} {_listed(value, clients)}"
    yield from _of_result(outcome.result)
    yield from _notes(cluster, step.number, since)


def _of_result(result: Any) -> Iterator[str]:
    if isinstance(result, Topic):
        shown = list(result)[:PARTITIONS_SHOWN]
        yield from map(_partition, shown)
        if len(result) > len(shown):
            yield f"and {counted(len(result) - len(shown), 'more partition')}"
    elif isinstance(result, Mapping):
        yield from (f"{name} {_of_one(value)}" for name, value in result.items())
    elif (text := clients_result(result)) is not None:
        yield text


def _of_one(value: ErrorCode | int) -> str:
    """An election's error, or the offset at which a partition begins once records are deleted."""
    return value.name if isinstance(value, ErrorCode) else f"begins at offset {value}"


def _partition(partition: Partition) -> str:
    leader = "none" if partition.leader is None else str(partition.leader.id)
    isr = ",".join(str(node.id) for node in partition.isr)
    return f"{partition.topic}-{partition.index} leader {leader}, isr [{isr}]"


def _notes(cluster: RunningCluster, number: int, since: int) -> Iterator[str]:
    """The notes that a step left where it changed nothing."""
    faults = reversed(list(cluster.recorder.in_memory("fault")))
    new = [fault.values for fault in takewhile(lambda fault: fault.seq > since, faults)]
    for row in reversed(new):
        if row.get("step") == number and row.get("phase") == "note":
            listed = _listed(row["targets"], cluster.client_nodes.known)
            yield f"{listed}: {row['detail']}".removeprefix(": ")


def _listed(ids: Iterable[Any], clients: Mapping[int, str]) -> str:
    """Ids, also those of groups or links; clients by their names."""
    return ", ".join(
        f"[{_listed(named, clients)}]"
        if isinstance(named, tuple | list)
        else clients.get(named, str(named))
        for named in ids
    )
