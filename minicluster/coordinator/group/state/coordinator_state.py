"""The shards, timers and effects that all requests of a group coordinator share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minicluster.coordinator.client_context import ClientContext
from minicluster.coordinator.group.config import GroupCoordinatorConfig
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.internal_topics import partition_of
from minicluster.coordinator.runtime.internal_log import InternalLog
from minicluster.coordinator.runtime.runtime import CoordinatorRuntime
from minicluster.coordinator.runtime.timeline import Timeline
from minicluster.coordinator.runtime.timers import ShardTimers, Timers
from minicluster.effects import Effect, Respond
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.rules import Rules

TIMER = "group-coordinator"


@dataclass(frozen=True, slots=True)
class Context:
    """The request that an operation responds to, and its client."""

    token: Any
    client: ClientContext


class CoordinatorState:
    """The shards of ``__consumer_offsets`` that this broker leads."""

    def __init__(self, config: GroupCoordinatorConfig, log: InternalLog, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.image = MetadataImage.EMPTY
        self._effects: list[Effect] = []
        self.timers = Timers(TIMER, self._effects)
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            log, self._make_shard, self.timers, write_timeout_ms=config.offset_commit_timeout_ms
        )

    def _make_shard(self, partition: int, timeline: Timeline, timers: ShardTimers) -> GroupShard:
        return GroupShard(partition, timeline, timers)

    def partition_of(self, group_id: str) -> int:
        """The partition that holds a group."""
        topic = self.image.topics.named(GROUP_METADATA_TOPIC)
        return 0 if topic is None else partition_of(group_id, len(topic.partitions))

    def respond(self, token: Any, response: Any) -> None:
        """Give a response."""
        self._effects.append(Respond(token, response))

    def take_effects(self) -> list[Effect]:
        """All effects since the last call, and the timer for what is due next."""
        self.timers.arm()
        taken, self._effects[:] = list(self._effects), []
        return taken
