"""The topics of a run by name, and the name of each.

A row that names its topic without the id is of the one topic that ever had the name; where several
had it, of the one that the broker had when it responded. A broker that had none of them, such as
the coordinator of a group, names none of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

from minicluster.verify.histories.traced_run import Row, TracedRun

SERVED = ("fetch", "list", "read")
_OF_REPLICAS = (*SERVED, "send")  # what the broker answers out of its own replicas


class TopicNames:
    """The topics of a run by name, and the name of each."""

    def __init__(self, partition_events: Iterable[Row]) -> None:
        self._names: dict[str, str | None] = {}  # by topic id
        self._ids: dict[str, dict[str, None]] = {}  # by name
        first: dict[tuple[str, str, int, int], int] = {}
        for row in partition_events:
            topic_id, name = row["topic_id"], row["topic"]
            self._names.setdefault(topic_id, name)
            self._ids.setdefault(name, {})[topic_id] = None
            first.setdefault((topic_id, name, row["part"], row["broker"]), row["seq"])
        # Of names that several topics had: by name, partition and broker, one after the other.
        self._since: dict[tuple[str, int, int], list[tuple[int, str]]] = {}
        for (topic_id, name, part, broker), seq in first.items():
            if len(self._ids[name]) > 1:
                self._since.setdefault((name, part, broker), []).append((seq, topic_id))
        for topics in self._since.values():
            topics.sort()

    def ids_of(self, name: str | None) -> list[str]:
        """The ids of the topics that ever had a name."""
        return [] if name is None else list(self._ids.get(name, ()))

    def name_of(self, topic_id: str) -> str | None:
        """The name of a topic."""
        return self._names.get(topic_id)

    def is_known(self, topic_id: str) -> bool:
        """Some broker had a replica of the topic."""
        return topic_id in self._names

    def id_in(self, row: Row) -> str | None:
        """The topic that a row of a response is of; None: it is of none that is known."""
        topic_id: str | None = row["topic_id"]
        if topic_id is not None:
            return topic_id if topic_id in self._names else None
        ids = self.ids_of(row["topic"])
        if len(ids) < 2:
            return ids[0] if ids else None
        if row["f"] not in _OF_REPLICAS:
            return None
        topics = self._since.get((row["topic"], row["part"], row["broker"]), [])
        place = bisect_right(topics, row["seq"], key=itemgetter(0))
        return topics[place - 1][1] if place else None


def topic_names(run: TracedRun) -> TopicNames:
    """Context: the topics of the run by name."""
    return TopicNames(run.rows("partition_event"))
