"""The state of a serving cluster in one line."""

from __future__ import annotations

from collections import Counter

from minicluster.actors.cluster.running import RunningCluster


class Status:
    """The status line: topics, connections, requests per second, and who leads."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        self._seen = (0.0, 0)

    def line(self, now_s: float) -> str:
        """The line now.

        Units:   now_s: seconds of any clock that the calls share.
        """
        cluster, listeners = self._cluster, self._cluster.listeners
        assert listeners is not None
        before_s, before = self._seen
        requests = listeners.requests
        self._seen = (now_s, requests)
        rate = (requests - before) / max(now_s - before_s, 0.001)
        partitions = list(cluster.image.topics.partitions())
        leaders = Counter(state.leader for _, _, state in partitions)
        topics = len({topic.name for topic, _, _ in partitions})
        active = cluster.active_controller_id()
        led = ", ".join(
            f"{node_id}{self._state(node_id)}: {leaders[node_id]}" for node_id in cluster.broker_ids
        )
        without = f", none: {leaders[-1]}" if leaders[-1] else ""
        return (
            f"{_count(topics, 'topic')}, {_count(listeners.connections, 'connection')}, "
            f"{rate:,.0f} requests/s, controller {'none' if active is None else active}, "
            f"leaders {led}{without}"
        )

    def _state(self, node_id: int) -> str:
        if node_id not in self._cluster.processes:
            return " down"
        if self._cluster.processes[node_id].paused:
            return " paused"
        broker = self._cluster.image.cluster.broker(node_id)
        return " fenced" if broker is None or broker.fenced else ""


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
