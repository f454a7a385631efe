"""The driver of groups and consumers of a run that has ended: which fold gets what, and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.verify.group import consumers, groups
from minicluster.verify.group.consumers import Consumer
from minicluster.verify.group.coordinators import Coordinators
from minicluster.verify.group.event import BEFORE_ALL, ClientEvent, in_response
from minicluster.verify.group.groups import Group, OffsetSet
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import ended_partitions, last_leaders, losses
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import TopicNames, topic_names
from minicluster.verify.rules.rule import rules_in

MODULES = (groups, consumers)
_RULES = tuple(rule for module in MODULES for rule in rules_in(module))
_ASSIGNED, _RECORD, _FETCH = range(3)  # the order of what has one event


class Groups:
    """All groups of a run."""

    def __init__(self, names: TopicNames) -> None:
        self.by_name: dict[str | None, Group] = defaultdict(Group)
        self.misled: set[str] = set()  # clients that were told what no node said
        self._names = names
        self._of_client: dict[str, Group] = {}

    def on_response(self, event: ClientEvent) -> None:
        """A client got a response; a coordinator may know no topic of a name that is in it."""
        if event.misled:
            self.misled.add(event.client)
        if event.f == "own":
            group = self._of_client[event.client] = self.by_name[event.group]
            group.clients.add(event.client)
        elif event.f in ("commit", "pending"):
            group = self.by_name[event.group]
            group.is_sought |= not event.is_own
            if event.f == "pending":
                group.committers.add(event.client)
                group.producers |= {event.producer[0]} if event.is_own else set()
        elif event.f == "end":
            for group in self.by_name.values():
                group.on_end_of_transaction(event)
        if event.is_known:
            self._on_partition(event)

    def _on_partition(self, event: ClientEvent) -> None:
        if event.f == "read":
            group = self._of_client.get(event.client)
            if group is not None and event.is_own and event.received is not None:
                group.on_read(event)
        elif event.excuse is None and event.f in ("own", "commit", "pending", "committed"):
            self.by_name[event.group].on_response(event)

    def on_deleted(self, row: Row) -> None:
        """A coordinator deletes an offset or a group, a row of ``group_event``."""
        group = self.by_name[row["group_id"]]
        if row["kind"] == "end":
            group.ended.append(row["seq"])
        elif row["kind"] == "forget":
            # The coordinator keeps offsets by name, so the deletion is of each topic of it.
            for topic_id in self._names.ids_of(row["topic"]):
                group.on_deleted((topic_id, row["part"]), row["seq"])


def client_responses(run: TracedRun) -> list[ClientEvent]:
    """Context: what clients got, in order."""
    names, clients = run.context(topic_names), run.context(ended_partitions).clients
    events = []
    for row in run.rows("client_record"):
        known = clients.get((row["topic_id"], row["part"]))
        epoch = row["leader_epoch"] if row["f"] == "read" else None
        why = None if known is None else known.excuse_of(row["offset"], row["value"], epoch)
        events.append(ClientEvent(row, names.name_of(row["topic_id"]), why))
    return sorted(events, key=in_response)


def client_events(run: TracedRun) -> list[ClientEvent]:
    """Context: what clients got about partitions of which some broker had a replica, in order."""
    return [event for event in run.context(client_responses) if event.is_known]


def coordinators(run: TracedRun) -> Coordinators:
    """Context: the coordinators of groups."""
    folded = Coordinators()
    for row in run.rows("partition_event"):
        if row["topic"] == GROUP_METADATA_TOPIC:
            folded.on_event(row)
    sizes: dict[int, int] = {}  # by operation, how many partitions there were by then
    for (_, part), states in run.timeline.partitions.items():
        if states[0].topic == GROUP_METADATA_TOPIC:
            operation = states[0].operation
            sizes[operation] = max(part + 1, sizes.get(operation, 0))
    folded.at_end(run.context(losses), sizes.values())
    return folded


def groups_of(run: TracedRun) -> Groups:
    """Context: the groups of a run."""
    folded = Groups(run.context(topic_names))
    take: tuple[Callable[[Any], None], ...] = folded.on_response, folded.on_deleted
    responses = ((event.seq, 0, event) for event in run.context(client_responses))
    deleted = ((row["seq"], 1, row) for row in run.rows("group_event"))
    for _, kind, what in merge(responses, deleted, key=itemgetter(0, 1)):
        take[kind](what)
    return folded


def offsets_of_groups(run: TracedRun) -> Iterator[tuple[str | None, Place, list[OffsetSet]]]:
    """Whatever has set the offset of each group and partition, in order."""
    for name, group in run.context(groups_of).by_name.items():
        for place, sets in group.sets.items():
            yield name, place, sets


def judge_groups(run: TracedRun, judge: Judge) -> None:
    """Judge the groups of a run that has ended, and the consumers."""
    by_group, leaders = run.context(coordinators), run.context(last_leaders)
    groups = run.context(groups_of)
    for name, group in groups.by_name.items():
        judge.hear(group.at_end(by_group.of(name), leaders, groups.misled))
    by_client: dict[str, Consumer] = {}
    for at, kind, event in _of_consumers(run):
        consumer = by_client.setdefault(event.client, Consumer(leaders))
        if kind == _ASSIGNED:
            consumer.on_assigned(at)
        elif kind == _RECORD and event.offset is not None:
            judge.hear(consumer.on_record(event, event.offset))
        elif kind == _FETCH and event.fetch_offset is not None:
            judge.hear(consumer.on_fetch(event, event.fetch_offset))


def _of_consumers(run: TracedRun) -> list[tuple[int, int, ClientEvent]]:
    """The requests and responses of the cluster's own consumers, in order."""
    events: list[tuple[int, int, ClientEvent]] = []
    for event in run.context(client_events):
        if not event.is_own or event.misled:
            continue
        if event.f == "fetch":
            events.append((BEFORE_ALL if event.sent is None else event.sent, _FETCH, event))
        elif event.received is None:
            continue
        elif event.f in ("own", "committed"):
            events.append((event.received, _ASSIGNED, event))
        elif event.f == "read" and event.fetch_offset is not None:
            events.append((event.received, _RECORD, event))
    return sorted(events, key=itemgetter(0, 1))


HISTORY = History(
    yields=(),
    reads=("client_record", "group_event", "partition_event", "raft_event", "replica_log"),
    fold=judge_groups,
    rules=_RULES,
)
