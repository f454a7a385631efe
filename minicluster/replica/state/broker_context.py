"""The part of a broker that each of its partitions sees.

A partition judges followers by the published metadata, sends ISR changes through the
AlterPartition manager, and completes delayed operations. All parts of the room add their effects to
one list, which the machine returns.

Source:  the constructor of Partition (metadataCache, delayedOperations, alterPartitionManager).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from minicluster.effects import Effect, FaultHit, Respond
from minicluster.faults import Faults
from minicluster.replica.broker_view import BrokerView
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.partition.isr_state import AlterPartitionItem, AlterPartitionResult
from minicluster.replica.requests.purgatory import DelayedOperations, Key
from minicluster.replica.to_controller.controller_channel import CorrelationIds
from minicluster.rules import Rules

OnAlterPartition = Callable[[AlterPartitionResult, int], None]


class SubmitsAlterPartition(Protocol):
    """The AlterPartition manager as a partition uses it."""

    def submit(self, item: AlterPartitionItem, on_complete: OnAlterPartition, now_ms: int) -> None:
        """Queue an item; ``on_complete(result, now_ms)`` is called once, perhaps at once."""


class HasHighWatermark(Protocol):
    """A partition as the checkpoint of high watermarks takes it."""

    key: Key
    name: str

    @property
    def high_watermark(self) -> int:
        """The end of the committed records."""


class BrokerContext:
    """The broker's id, view of the cluster, rules, purgatories and collected effects.

    Shapes:  ``alter_partition_manager`` is set once, by the owner of the context, before the first
             partition is made. ``unwritten``: partitions whose high watermark may differ from the
             one on disk; ``isr_unchecked``: those whose ISR may have to change with time.
    """

    alter_partition_manager: SubmitsAlterPartition

    def __init__(
        self,
        config: ReplicaManagerConfig,
        *,
        ids: CorrelationIds | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
    ) -> None:
        self.config = config
        self.fetcher_config = config.fetcher
        self.sends_recovery_state = True  # false below metadata.version 3.2-IV0
        self.ids = ids or CorrelationIds()
        self.rules = rules
        self.faults = faults
        self.view = BrokerView()
        self.unwritten: dict[HasHighWatermark, None] = {}
        self.isr_unchecked: dict[object, None] = {}
        self.effects: list[Effect] = []
        self.delayed = DelayedOperations(self.effects)

    @property
    def broker_id(self) -> int:
        """The broker's id."""
        return self.config.broker_id

    def hit(self, zoo_id: str) -> None:
        """Count that a planted fault has changed the outcome of a step."""
        self.effects.append(FaultHit(zoo_id))

    def respond(self, token: object, response: object) -> None:
        """Respond to the request that came with a token."""
        self.effects.append(Respond(token, response))

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in the order in which they happened."""
        taken = self.effects[:]
        self.effects.clear()
        return taken
