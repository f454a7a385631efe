"""What a broker knows of brokers: its own epoch, and the others as its published image has them.

Source:  KRaftMetadataCache.getAliveBrokerEpoch, isBrokerFenced, isBrokerShuttingDown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from minicluster.replica.partition.isr_state import NO_BROKER_EPOCH


class BrokerStanding(Protocol):
    """What counts of a registered broker; an image's BrokerRegistration has these."""

    @property
    def epoch(self) -> int:
        """Its broker epoch."""

    @property
    def fenced(self) -> bool:
        """Whether it is fenced."""

    @property
    def in_controlled_shutdown(self) -> bool:
        """Whether it is shutting down."""


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The own broker epoch and the registered brokers of the newest published image.

    A broker that is missing counts as not fenced and not shutting down, but it has no epoch.
    """

    broker_epoch: int = NO_BROKER_EPOCH
    brokers: Mapping[int, BrokerStanding] = field(default_factory=dict)

    def alive_epoch(self, broker_id: int) -> int | None:
        """The epoch of a registered broker that is not fenced."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_eligible(self, broker_id: int, fetch_epoch: int | None) -> bool:
        """Whether a replica whose last fetch carried this epoch may be in an ISR.

        Units:   epoch -1 is a fetch without one, which matches any; None means no fetch yet.
        Source:  KIP-841, KIP-903; Partition.isReplicaIsrEligible.
        """
        broker = self.brokers.get(broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        return fetch_epoch is not None and fetch_epoch in (NO_BROKER_EPOCH, broker.epoch)
