"""The part of a broker that each of its partitions sees.

A partition judges followers by the published metadata (``BrokerView``), has the AlterPartition
manager send its ISR changes (``AlterPartitionItem``), and completes delayed operations. All parts
of the room add their effects to one list, which the machine returns.

Source:  the constructor of Partition (metadataCache, delayedOperations, alterPartitionManager);
         KRaftMetadataCache.getAliveBrokerEpoch, isBrokerFenced, isBrokerShuttingDown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import field

from minicluster.channel.controller_channel import CorrelationIds
from minicluster.effects import Effect, FaultHit, Respond
from minicluster.faults import Faults
from minicluster.metadata.image.partition import RECOVERED
from minicluster.protocol import ErrorCode
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.replication_quota import ReplicationQuotas
from minicluster.replica.requests.purgatory import DelayedOperations
from minicluster.rules import Rules
from minicluster.values import Value

if TYPE_CHECKING:
    from minicluster.metadata.image.cluster import BrokerRegistration
    from minicluster.replica.partition.partition import Partition
    from minicluster.replica.to_controller.alter_partition_manager import AlterPartitionManager

NO_BROKER_EPOCH = -1


# --- ISR changes --------------------------------------------------------------------------------


class AlterPartitionItem(Value, kw_only=True):
    """The change of one partition that a leader requests; a retry is an equal item.

    Shapes:  isr is (broker id, broker epoch) by ascending id; epoch -1 means not known.
    Source:  AlterPartitionItem, LeaderAndIsr.
    """

    topic: str
    topic_id: UUID
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovery_state: int = RECOVERED

    @property
    def members(self) -> tuple[int, ...]:
        """The proposed ISR without broker epochs."""
        return tuple(member for member, _ in self.isr)


class AlterPartitionResult(Value, kw_only=True):
    """The outcome of one item; with an error, nothing else is set.

    Shapes:  ``acknowledged``: the controller has taken the request and has not decided it yet
             (KIP-497's text); the outcome comes with the metadata.
    """

    error: ErrorCode = ErrorCode.NONE
    acknowledged: bool = False
    leader: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    recovery_state: int = RECOVERED
    partition_epoch: int = 0


OnAlterPartition = Callable[[AlterPartitionResult, int], None]


# --- the metadata -------------------------------------------------------------------------------


class BrokerView(Value):
    """The own broker epoch and the registered brokers of the newest published image.

    A broker that is missing has no epoch, and is not eligible for an ISR.
    """

    broker_epoch: int = NO_BROKER_EPOCH
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)

    def alive_epoch(self, broker_id: int) -> int | None:
        """The epoch of a registered broker that is not fenced."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_eligible(self, broker_id: int, fetch_epoch: int | None) -> bool:
        """A replica may be in an ISR by the broker epoch of its last fetch.

        Units:   epoch -1 is a fetch without one, which matches any; None means no fetch yet.
        Source:  KIP-841, KIP-903; Partition.isReplicaIsrEligible.
        """
        broker = self.brokers.get(broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        return fetch_epoch is not None and fetch_epoch in (NO_BROKER_EPOCH, broker.epoch)


# --- the context --------------------------------------------------------------------------------


class BrokerContext:
    """The broker's id, view of the cluster, rules, purgatories and collected effects.

    Shapes:  ``alter_partition_manager`` is set once, by the owner of the context, before the first
             partition is made. ``unwritten``: partitions whose high watermark may differ from the
             one on disk; ``isr_unchecked``: those whose ISR may have to change with time.
    """

    alter_partition_manager: AlterPartitionManager
    behind_ms = 0  # the time of day is so much later than the clock, which leaves out stalls

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
        self.quotas = ReplicationQuotas(
            (config.replication_quota_samples, config.replication_quota_window_s),
            (config.alter_log_dirs_quota_samples, config.alter_log_dirs_quota_window_s),
        )
        self.unwritten: dict[Partition, None] = {}
        self.isr_unchecked: dict[Partition, None] = {}
        self.effects: list[Effect] = []
        self.delayed = DelayedOperations(self.effects)

    def date_ms(self, now_ms: int) -> int:
        """The time of day, which records and their retention go by; timeouts go by the clock."""
        return now_ms + self.behind_ms

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
        effects = self.effects[:]
        self.effects.clear()
        return effects
