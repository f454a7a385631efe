"""The coordinators of groups: the setting in which rules about groups are judged.

A coordinator has in memory what the log of its partition held when it became the leader. So what
that log has lost is gone, whatever the cause: the topic was deleted and made again, records expired
or were deleted (the log of a new leader begins further on), or ``losses`` knows of them (an unclean
election, a disk, the last ISR member). Where the topic was given more partitions, a group may have
another one, which each coordinator learns of when its broker starts. A group whose partition has
lost anything is promised nothing, in all of its run: what it had before and what it has made again
cannot be told apart, since nobody sees when a coordinator forgets.

A broker that is cut off from the others coordinates on until it hears of the next leader of its
partition. What it returns comes from its memory alone, and may be older than what that leader has
acknowledged since: an operation without records waits for no replica (CoordinatorRuntime).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from msgspec import Struct

from minicluster.protocol.topics import partition_of
from minicluster.verify.group.event import ClientEvent
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.partition.event import Place

_NEVER = 2**62
_OF_ROLES = ("become_leader", "become_follower", "stop", "delete")


class Deposed(Struct):
    """A broker that leads on after the election of another one.

    Units:   since: the event with which that one begins; until: with which it has heard of it.
    """

    broker: int
    since: int
    until: int = _NEVER


class Coordinator(Struct):
    """The coordinator of a group, whichever broker it was.

    Shapes:  may_have_lost: the group, as far as anyone can know.
    """

    may_have_lost: bool
    deposed: Sequence[Deposed]

    def excuse_of(self, response: ClientEvent) -> str | None:
        """Why a response promises nothing, if it does not."""
        if self.may_have_lost:
            return "the coordinator's log has lost records"
        for one in self.deposed:
            if one.broker == response.broker and one.since < response.seq < one.until:
                return "the coordinator had not heard yet of the next one"
        return None


class Coordinators:
    """The replicas of ``__consumer_offsets``: what they have lost, and which of them lead."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}  # by topic id, all topics of that name
        self._lost: set[int] = set()
        self._numbers: set[int] = set()
        self._leading: dict[int, dict[int, int]] = defaultdict(dict)  # by broker: the leader epoch
        self._newest: dict[int, int] = {}  # leader epoch
        self._deposed: dict[int, list[Deposed]] = defaultdict(list)

    def on_event(self, row: Row) -> None:
        """An event of a replica of the topic."""
        topic_id, part = row["topic_id"], row["part"]
        self._sizes[topic_id] = max(part + 1, self._sizes.get(topic_id, 0))
        if row["kind"] not in _OF_ROLES:
            return
        leading, broker = self._leading[part], row["broker"]
        leading.pop(broker, None)
        for deposed in self._deposed[part]:
            if deposed.broker == broker:
                deposed.until = min(deposed.until, row["seq"])
        if row["kind"] == "become_leader":
            self._on_leader(row, leading)

    def _on_leader(self, row: Row, leading: dict[int, int]) -> None:
        part, epochs = row["part"], row.get("epochs")
        # The first epoch of a log is cut off where the log begins
        # (LeaderEpochFileCache.truncateFromStart).
        if epochs and epochs[1] > 0:
            self._lost.add(part)
        leading[row["broker"]] = row["leader_epoch"]
        newest = self._newest[part] = max(self._newest.get(part, -1), row["leader_epoch"])
        for broker in [each for each, epoch in leading.items() if epoch < newest]:
            del leading[broker]
            self._deposed[part].append(Deposed(broker, row["seq"]))

    def at_end(self, losses: Collection[Place], sizes: Collection[int]) -> None:
        """The run has ended.

        Shapes:  losses: all partitions that have lost something. sizes: how many partitions the
                 topic has had, one after the other; none where no log has them.
        """
        self._lost |= {part for topic_id, part in losses if topic_id in self._sizes}
        self._numbers = set(sizes or self._sizes.values())

    def of(self, group: str | None) -> Coordinator:
        """The coordinator of a group."""
        parts = set() if group is None else {partition_of(group, one) for one in self._numbers}
        is_new = bool(parts) and len(self._sizes) > 1
        may_have_lost = is_new or len(parts) > 1 or not self._lost.isdisjoint(parts)
        return Coordinator(may_have_lost, [one for part in parts for one in self._deposed[part]])
