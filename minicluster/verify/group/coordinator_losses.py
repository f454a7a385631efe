"""What coordinators of groups have lost: the setting in which rules about groups are judged.

A coordinator has in memory what the log of its partition held when it became the leader. So what
that log has lost is gone from then on, whatever the cause: the topic was deleted and made again,
records expired or were deleted (the log of a new leader begins further on), or ``losses`` knows of
them (an unclean election, a disk, the last ISR member). Where the topic was given more partitions,
a group may have another one, which each coordinator learns of when its broker starts.
"""

from __future__ import annotations

from collections import defaultdict

from minicluster.protocol.topics import GROUP_METADATA_TOPIC, partition_of
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.partition.driver import losses
from minicluster.verify.partition.truth import ALWAYS_LOST


class CoordinatorLosses:
    """The events by which the partitions of ``__consumer_offsets`` have lost what they held."""

    def __init__(self, run: TracedRun) -> None:
        self._of_topic: list[int] = []
        self._of_partition: dict[int, list[int]] = defaultdict(list)
        numbers: dict[str, int] = {}  # of partitions, by topic id, the newest topic last
        starts: dict[tuple[str, int], int] = {}
        for row in run.rows("partition_event"):
            if row["topic"] != GROUP_METADATA_TOPIC:
                continue
            topic_id, part = row["topic_id"], row["part"]
            is_newest = topic_id not in numbers or topic_id == next(reversed(numbers))
            if numbers and (topic_id not in numbers or not is_newest):
                # The first event of another topic of that name, or one of the topic before: until
                # its replica is deleted, a coordinator may not have heard of the deletion.
                self._of_topic.append(row["seq"])
            numbers[topic_id] = max(part + 1, numbers.get(topic_id, 0))
            if row["kind"] == "become_leader":
                # Where the log begins: its first epoch is cut off there
                # (LeaderEpochFileCache.truncateFromStart).
                epochs = row.get("epochs")
                start = epochs[1] if epochs else 0
                if start > starts.get((topic_id, part), 0):
                    self._of_partition[part].append(row["seq"])
                    starts[topic_id, part] = start
        self._grown_at, grown = _growth(run)
        self._numbers = grown | {*numbers.values()}
        for (topic_id, part), loss in run.context(losses).items():
            if topic_id in numbers:
                self._of_partition[part] += loss.events

    def events(self, group: str | None) -> list[int]:
        """The events by which a group was lost, in their order."""
        if group is None or not (self._of_topic or self._of_partition):
            return []
        parts = {partition_of(group, number) for number in self._numbers}
        of_partitions = (event for part in parts for event in self._of_partition.get(part, ()))
        return sorted([*self._of_topic, *of_partitions])

    def has_lost(self, group: str | None, since: int, until: int) -> bool:
        """Whether what was written by one event was lost by another, as far as anyone can know."""
        return self.may_be_elsewhere(group, until) or any(
            since < event <= until or event == ALWAYS_LOST for event in self.events(group)
        )

    def may_be_elsewhere(self, group: str | None, at: int) -> bool:
        """Whether coordinators may have a group in different partitions by an event."""
        if group is None or self._grown_at is None or at <= self._grown_at:
            return False
        return len({partition_of(group, number) for number in self._numbers}) > 1


def _growth(run: TracedRun) -> tuple[int | None, set[int]]:
    """The event by which a topic was first given more partitions, and all numbers that it had."""
    created: dict[str, dict[int, int]] = {}  # topic id -> operation -> partitions by then
    for (topic_id, part), states in run.timeline.partitions.items():
        if states[0].topic == GROUP_METADATA_TOPIC:
            operations = created.setdefault(topic_id, {})
            operation = states[0].operation
            operations[operation] = max(part + 1, operations.get(operation, 0))
    known = run.context(commits)
    grown = [
        known.seq_of(operation - 1)
        for operations in created.values()
        for operation in sorted(operations)[1:]
    ]
    numbers = {number for operations in created.values() for number in operations.values()}
    return min((seq for seq in grown if seq is not None), default=None), numbers


def group_losses(run: TracedRun) -> CoordinatorLosses:
    """Context: the groups that their coordinators have lost."""
    return CoordinatorLosses(run)
