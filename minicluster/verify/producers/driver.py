"""The driver of producers, and of groups that transform, over a run that has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.verify.group.driver import (
    client_events,
    client_responses,
    coordinators,
    groups_of,
)
from minicluster.verify.group.event import ClientEvent
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import last_leaders, losses
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import topic_names
from minicluster.verify.producers import producers as of_producers
from minicluster.verify.producers import transforms
from minicluster.verify.producers.producers import (
    COMMIT,
    Batch,
    Producer,
    read_committed_leaves_no_committed_record_out,
    read_committed_sees_no_aborted_record,
)
from minicluster.verify.producers.transforms import (
    Transform,
    a_transform_that_was_given_another_offset_promises_nothing,
    transformed,
)
from minicluster.verify.rules.rule import rules_in

MODULES = (of_producers, transforms)
_RULES = tuple(rule for module in MODULES for rule in rules_in(module))


def producers(run: TracedRun) -> Mapping[int, Producer]:
    """Context: the producers of a run, and what they wrote to the logs of the last leaders."""
    leaders, lost = run.context(last_leaders), run.context(losses)
    folded: dict[int, Producer] = defaultdict(Producer)
    for row in run.rows("log_batch", by="base_offset"):
        place = row["topic_id"], row["part"]
        if place in leaders and leaders[place].election.broker == row["broker"]:
            loss = lost.get(place)
            batch = Batch(row, None if loss is None else loss.why)
            folded[batch.producer_id].on_batch(batch)
    return folded


def producer_batches(run: TracedRun) -> Iterator[Batch]:
    """The batches of producers in the logs of the last leaders."""
    for producer in run.context(producers).values():
        for batches in producer.batches.values():
            yield from batches


def judge_producers(run: TracedRun, judge: Judge) -> None:
    """Judge the producers of a run that has ended, and what groups transform."""
    folded, names = run.context(producers), run.context(topic_names)
    for row in run.rows("transaction_decision"):
        if row["producer_id"] in folded:
            folded[row["producer_id"]].on_decision(row)
    for event in run.context(client_responses):
        producer_id, epoch = event.producer
        if producer_id is not None and producer_id >= 0 and epoch is not None:
            judge.hear(folded[producer_id].on_client(event, epoch))
    reads = [event for event in run.context(client_events) if event.f == "read"]
    for read in reads:
        producer_id, epoch = read.producer
        if producer_id is not None and producer_id >= 0 and _is_seen(read):
            folded[producer_id].on_read(read, epoch)
    for producer in folded.values():
        judge.hear(producer.at_end(names))
    _judge_read_committed(run, judge, reads)
    _judge_transforms(run, judge, reads)


def _judge_read_committed(run: TracedRun, judge: Judge, reads: Iterable[ClientEvent]) -> None:
    data: dict[tuple[Place, int | None], Batch] = {
        (batch.place, batch.base_offset): batch
        for batch in producer_batches(run)
        if batch.transactional and batch.marker is None
    }
    for read in reads:
        if read.read_committed:
            batch = data.get((read.place, read.batch_offset))
            judge.hear(read_committed_sees_no_aborted_record(read, batch))
            judge.hear(read_committed_leaves_no_committed_record_out(read, batch))


def _judge_transforms(run: TracedRun, judge: Judge, reads: Iterable[ClientEvent]) -> None:
    sources: dict[str | None, set[str]] = defaultdict(set)
    for read in reads:
        if read.value is not None:
            sources[transformed(read)].add(read.place[0])
    for transform in _transforms(run, judge):
        judge.hear(transform.at_end(sources))
        # What a partition has lost may have been written.
        for read in () if run.context(losses) else reads:
            if read.is_own and read.client in transform.group.clients and _is_seen(read):
                judge.hear(transform.on_read(read))


def _is_seen(read: ClientEvent) -> bool:
    """A client takes the record for one that is there, and something is promised of it."""
    return bool(read.visible) and read.excuse is None


def _transforms(run: TracedRun, judge: Judge) -> list[Transform]:
    """The groups that transform, with what they wrote to the logs of the last leaders."""
    leaders, groups = run.context(last_leaders), run.context(groups_of)
    by_group, transforms = run.context(coordinators), list[Transform]()
    for name, group in groups.by_name.items():
        if group.producers:
            coordinator, clients = by_group.of(name), group.clients | group.committers
            excuses = [*filter(None, map(coordinator.excuse_of, group.fetched))]
            if not groups.misled.isdisjoint(clients):
                excuses.append("a member was told what no node said")
            judge.hear(a_transform_that_was_given_another_offset_promises_nothing(excuses))
            if not excuses:
                transforms.append(Transform(group))
    for batch in producer_batches(run) if transforms else ():
        record = leaders[batch.place].log.at(batch.base_offset)
        is_written = batch.ended_by == COMMIT and batch.marker is None and batch.excuse is None
        if is_written and record is not None and batch.topic != GROUP_METADATA_TOPIC:
            for transform in transforms:
                if batch.producer_id in transform.group.producers:
                    transform.written[batch.place[0], record[1]].append(batch)
    return transforms


HISTORY = History(
    yields=(),
    reads=(
        "client_record", "group_event", "log_batch", "partition_event", "replica_log",
        "transaction_decision",
    ),
    fold=judge_producers,
    rules=_RULES,
)  # fmt: skip
