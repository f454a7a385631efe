"""The topics of a run: their names, and those that a name had."""

from __future__ import annotations

from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.partition.driver import ended_partitions


class TopicNames:
    """The topics of which some broker had a replica.

    Shapes:  names: by topic id.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._ids: dict[str, list[str]] = {}
        for topic_id, name in names.items():
            self._ids.setdefault(name, []).append(topic_id)

    def ids_of(self, name: str | None) -> list[str]:
        """The ids of the topics that ever had a name."""
        return [] if name is None else self._ids.get(name, [])

    def name_of(self, topic_id: str | None) -> str | None:
        """The name of a topic; None where no broker had a replica of it."""
        return None if topic_id is None else self._names.get(topic_id)


def topic_names(run: TracedRun) -> TopicNames:
    """Context: the topics of the run by name."""
    partitions = run.context(ended_partitions).by_place
    return TopicNames(
        {topic_id: known.topic for (topic_id, _), known in partitions.items() if known.topic}
    )
