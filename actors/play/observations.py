"""The observations of one run, from its trace and its committed log (``scenario.coverage``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minicluster.actors.cluster.cluster import KRAFT, ZOOKEEPER
from minicluster.actors.cluster.running import RunningCluster
from minicluster.controller.errors import Reason
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.protocol import ErrorCode, Message, Struct
from minicluster.scenario.coverage import Observation
from minicluster.verify.live import is_judged_live
from minicluster.verify.model import Evidence
from minicluster.verify.rules.every import RULES

# A running cluster shows findings of this rule, and none of its cases.
_WITHOUT_CASES = ("E08",)
_OF_KRAFT = frozenset(
    rule.id
    for rule in RULES
    if is_judged_live(rule)
    and rule.evidence is not Evidence.ZNODES
    and rule.id not in _WITHOUT_CASES
)
_OF_ZOOKEEPER = frozenset(rule.id for rule in RULES if is_judged_live(rule, on_zookeeper=True))
KNOWN: Mapping[str, Mapping[str, frozenset[str]]] = {
    KRAFT: {"rules": _OF_KRAFT, "refusals": frozenset(map(str, Reason))},
    # The controller there gives no reasons.
    ZOOKEEPER: {"rules": _OF_ZOOKEEPER},
}
"""The closed lists of observations that a run of a mode can have."""
_REPLICA = frozenset(
    {"become_leader", "become_follower", "isr_pending", "isr_commit", "isr_revert", "truncate",
     "stop", "delete"}
)  # fmt: skip
_VOTER = frozenset({"elected", "voted", "epoch", "truncate", "resign", "begin", "voters"})
_LISTED = ("topics", "partitions", "responses", "results")
_LISTS: dict[type, tuple[bool, tuple[str, ...]]] = {}  # has an error code, fields that hold lists


def observations_of(cluster: RunningCluster) -> frozenset[Observation]:
    """Everything that a run went through, as far as it is still in memory."""
    observed: set[Observation] = set()
    for row in cluster.recorder.in_memory("refusal"):
        observed.add(("refusals", str(row.values["reason"])))
    observed |= _replicas(r.values for r in cluster.recorder.in_memory("partition_event"))
    observed |= _voters(r.values for r in cluster.recorder.in_memory("raft_event"))
    for exchange in cluster.recorder.exchanges:
        for code in _errors(exchange.response):
            observed.add(("errors", f"{exchange.api} {ErrorCode.name_of(code)}"))
    observed |= {("records", name) for name in _records(cluster)}
    for looked_at in _cases(cluster):
        observed |= {("rules", rule) for rule, count in looked_at.items() if count}
    return frozenset(observed)


def _cases(cluster: RunningCluster) -> Iterator[Mapping[str, int]]:
    """The cases of rules that were judged while the cluster ran."""
    if cluster.live_checks is not None:
        yield cluster.live_checks.looked_at


def _replicas(rows: Iterable[Mapping[str, Any]]) -> set[Observation]:
    seen: set[Observation] = set()
    last: dict[tuple[Any, ...], str] = {}
    for row in rows:
        kind = row["kind"]
        if kind not in _REPLICA:
            continue
        name = f"{kind} {row['error']}" if row.get("error") else kind
        key = row["broker"], row["topic_id"], row["part"]
        seen.add(("replicas", f"{last.get(key, 'nothing')} -> {name}"))
        last[key] = name
        isr, maximal = row.get("isr"), row.get("maximal_isr")
        if isr is not None and maximal is not None:
            pending = ", one joins" if len(maximal) > len(isr) else ""
            minimum = row.get("min_isr")
            seen.add(("ISRs", f"{kind} with {len(isr)} of at least {minimum}{pending}"))
    return seen


def _voters(rows: Iterable[Mapping[str, Any]]) -> set[Observation]:
    seen: set[Observation] = set()
    last: dict[int, str] = {}
    for row in rows:
        kind, node = row["kind"], row["node"]
        if kind in _VOTER:
            seen.add(("voters", f"{last.get(node, 'nothing')} -> {kind}"))
            last[node] = kind
    return seen


def _records(cluster: RunningCluster) -> set[str]:
    """Each type of record in the controllers' logs, with the optional fields that it sets."""
    return {
        _shape(stored.record)
        for node in cluster.controller_ids
        for batch in cluster.disks[node].log(METADATA_DIRECTORY).batches
        if not batch.is_control
        for stored in batch.metadata_records
    }


def _shape(record: Message) -> str:
    """The type of a record and the fields that are not at their defaults, ids left out."""
    changed = [
        spec.name
        for spec in record.schema
        if getattr(record, spec.name) != spec.default
        and not spec.name.endswith(("_id", "_epoch", "name"))
    ]
    return " ".join([type(record).__name__.removesuffix("Record"), *changed])


def _errors(message: Any) -> Iterator[int]:
    """The error codes of a message, those of its topics and partitions among them."""
    kind = type(message)
    if kind not in _LISTS:
        names = {spec.name for spec in kind.schema} if issubclass(kind, Struct) else set()
        lists = tuple(name for name in _LISTED if name in names)
        _LISTS[kind] = ("error_code" in names, lists)
    has_error, lists = _LISTS[kind]
    if has_error and message.error_code:
        yield int(message.error_code)
    for name in lists:
        for part in getattr(message, name) or ():
            yield from _errors(part)
