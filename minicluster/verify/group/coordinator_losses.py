"""The losses of coordinators of groups: the setting in which rules about groups are judged.

A coordinator has in memory what the log of its partition held when it became the leader. So what
that log has lost is gone, whatever the cause: the topic was deleted and made again, records expired
or were deleted (the log of a new leader begins further on), or ``losses`` knows of them (an unclean
election, a disk, the last ISR member). Where the topic was given more partitions, a group may have
another one, which each coordinator learns of when its broker starts.

A group whose partition has lost anything is promised nothing, in all of its run: what it had before
and what it has made again cannot be told apart, since nobody sees when a coordinator forgets.
"""

from __future__ import annotations

from collections.abc import Collection

from minicluster.protocol.topics import partition_of
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.partition.event import Place


class CoordinatorLosses:
    """The partitions of ``__consumer_offsets`` that have lost what they held."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}  # by topic id, all topics of that name
        self._lost: set[int] = set()
        self._numbers: set[int] = set()

    def on_event(self, row: Row) -> None:
        """An event of a replica of the topic."""
        topic_id, part = row["topic_id"], row["part"]
        self._sizes[topic_id] = max(part + 1, self._sizes.get(topic_id, 0))
        epochs = row.get("epochs")
        # The first epoch of a log is cut off where the log begins
        # (LeaderEpochFileCache.truncateFromStart).
        if row["kind"] == "become_leader" and epochs and epochs[1] > 0:
            self._lost.add(part)

    def at_end(self, losses: Collection[Place], sizes: Collection[int]) -> None:
        """The run has ended.

        Shapes:  losses: all partitions that have lost something. sizes: how many partitions the
                 topic has had, one after the other; none where no log has them.
        """
        self._lost |= {part for topic_id, part in losses if topic_id in self._sizes}
        self._numbers = set(sizes or self._sizes.values())

    def may_have_lost(self, group: str | None) -> bool:
        """Whether a group was lost, as far as anyone can know."""
        if group is None:
            return False
        parts = {partition_of(group, number) for number in self._numbers}
        return len(self._sizes) > 1 or len(parts) > 1 or not self._lost.isdisjoint(parts)
