"""The losses of coordinators of groups: the setting in which rules about groups are judged.

A coordinator has in memory what the log of its partition held when it became the leader. So what
that log has lost is gone from then on, whatever the cause: the topic was deleted and made again,
records expired or were deleted (the log of a new leader begins further on), or ``losses`` knows of
them (an unclean election, a disk, the last ISR member). Where the topic was given more partitions,
a group may have another one, which each coordinator learns of when its broker starts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from minicluster.protocol.topics import partition_of
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.truth import ALWAYS_LOST, Loss


class CoordinatorLosses:
    """The events by which the partitions of ``__consumer_offsets`` have lost what they held."""

    def __init__(self) -> None:
        self._of_topic: list[int] = []
        self._of_partition: dict[int, list[int]] = defaultdict(list)
        self._partitions: dict[str, int] = {}  # by topic id, the newest topic last
        self._starts: dict[Place, int] = {}
        self._grown_at: int | None = None
        self._numbers: set[int] = set()

    def on_event(self, row: Row) -> None:
        """An event of a replica of the topic."""
        topic_id, part, partitions = row["topic_id"], row["part"], self._partitions
        is_newest = topic_id not in partitions or topic_id == next(reversed(partitions))
        if partitions and (topic_id not in partitions or not is_newest):
            # The first event of another topic of that name, or one of the topic before: until its
            # replica is deleted, a coordinator may not have heard of the deletion.
            self._of_topic.append(row["seq"])
        partitions[topic_id] = max(part + 1, partitions.get(topic_id, 0))
        if row["kind"] == "become_leader":
            # Where the log begins: its first epoch is cut off there
            # (LeaderEpochFileCache.truncateFromStart).
            epochs = row.get("epochs")
            start = epochs[1] if epochs else 0
            if start > self._starts.get((topic_id, part), 0):
                self._of_partition[part].append(row["seq"])
                self._starts[topic_id, part] = start

    def at_end(self, losses: Mapping[Place, Loss], grown_at: int | None, grown: set[int]) -> None:
        """The run has ended.

        Shapes:  losses: of all partitions. grown_at: the event by which the topic was first given
                 more partitions; grown: all numbers of them that the log has.
        """
        self._grown_at, self._numbers = grown_at, grown | {*self._partitions.values()}
        for (topic_id, part), loss in losses.items():
            if topic_id in self._partitions:
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
