"""A broker's view of the cluster: its own epoch, and the brokers of its published image.

Source:  KRaftMetadataCache.getAliveBrokerEpoch, isBrokerFenced, isBrokerShuttingDown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from minicluster.replica.partition.isr_state import NO_BROKER_EPOCH


class RegisteredBroker(Protocol):
    """The fields of a registration that matter here; an image's BrokerRegistration has them."""

    @property
    def epoch(self) -> int:
        """The broker epoch."""

    @property
    def fenced(self) -> bool:
        """A fenced broker is not alive."""

    @property
    def in_controlled_shutdown(self) -> bool:
        """A broker in controlled shutdown hands its leaderships over."""


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The own broker epoch and the registered brokers of the newest published image.

    A broker that is missing has no epoch, and is not eligible for an ISR.
    """

    broker_epoch: int = NO_BROKER_EPOCH
    brokers: Mapping[int, RegisteredBroker] = field(default_factory=dict)

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
