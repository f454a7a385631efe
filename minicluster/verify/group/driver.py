"""The driver of groups and consumers of a run that has ended: which fold gets what, and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

from minicluster.verify.group import consumers, groups
from minicluster.verify.group.consumers import Consumer
from minicluster.verify.group.coordinator_losses import group_losses
from minicluster.verify.group.event import BEFORE_ALL, ClientEvent, client_events
from minicluster.verify.group.groups import Group, OffsetSet
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import last_leaders
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import TopicNames, topic_names
from minicluster.verify.rules.rule import rules_in

MODULES = (groups, consumers)
_RULES = tuple(rule for module in MODULES for rule in rules_in(module))
_ASSIGNED, _RECORD, _FETCH = range(3)  # the order of what has one event
_CLIENT, _RESPONSE, _DELETED = range(3)


class Groups:
    """All groups of a run."""

    def __init__(self, names: TopicNames) -> None:
        self.by_name: dict[str | None, Group] = defaultdict(Group)
        self._names = names
        self._of_client: dict[str, Group] = {}

    def on_client(self, row: Row) -> None:
        """A row of a response to a client; a coordinator may know no topic of the name."""
        if row["f"] == "own":
            group = self._of_client[row["client_id"]] = self.by_name[row["group_id"]]
            group.clients.add(row["client_id"])
        elif row["f"] in ("commit", "pending"):
            group, is_own = self.by_name[row["group_id"]], row["connection"] is None
            group.is_sought |= not is_own
            if row["f"] == "pending":
                group.committers.add(row["client_id"])
                group.producers |= {row["producer_id"]} if is_own else set()
        elif row["f"] == "end":
            for group in self.by_name.values():
                group.on_end_of_transaction(row)

    def on_response(self, event: ClientEvent) -> None:
        """The same, of a topic that is known."""
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


def groups_of(run: TracedRun) -> Groups:
    """Context: the groups of a run."""
    folded = Groups(run.context(topic_names))
    take: tuple[Callable[[Any], None], ...] = (
        folded.on_client,
        folded.on_response,
        folded.on_deleted,
    )
    for _, kind, what in _in_order(run):
        take[kind](what)
    return folded


def _in_order(run: TracedRun) -> Iterator[tuple[int, int, Any]]:
    rows = ((row["seq"], _CLIENT, row) for row in run.rows("client_record"))
    responses = ((event.seq, _RESPONSE, event) for event in run.context(client_events))
    deleted = ((row["seq"], _DELETED, row) for row in run.rows("group_event"))
    return merge(rows, responses, deleted, key=itemgetter(0, 1))


def offsets_of_groups(run: TracedRun) -> Iterator[tuple[str | None, Place, list[OffsetSet]]]:
    """What has set the offset of each group and partition, in order."""
    for name, group in run.context(groups_of).by_name.items():
        for place, sets in group.sets.items():
            yield name, place, sets


def misled_clients(run: TracedRun) -> set[str]:
    """The clients that were told what no node said."""
    return {row["client_id"] for row in run.rows("client_record") if row["misled"]}


def judge_groups(run: TracedRun, judge: Judge) -> None:
    """Judge the groups of a run that has ended, and the consumers."""
    lost, leaders, misled = (
        run.context(group_losses),
        run.context(last_leaders),
        misled_clients(run),
    )
    for group in run.context(groups_of).by_name.values():
        judge.hear(group.at_end(lost, leaders, misled))
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
    """What the cluster's own consumers send and receive, in order."""
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
