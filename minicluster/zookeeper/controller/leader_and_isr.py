"""Leader and ISR of a partition, as the controller on ZooKeeper changes them.

Every decision of the controller raises the leader epoch; the version of the znode is the partition
epoch, and ZooKeeper raises it at every write.

Source:  KIP-497, KIP-704; org.apache.kafka.metadata.LeaderAndIsr, LeaderIsrAndControllerEpoch.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.metadata.image.partition import RECOVERED
from minicluster.values import Value, replace
from minicluster.zookeeper.znodes.partition_state import PartitionState


class LeaderAndIsr(Value, kw_only=True):
    """Leader and ISR with their epochs."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    partition_epoch: int = 0
    recovery_state: int = RECOVERED

    def elect(self, leader: int, isr: Sequence[int] | None = None) -> LeaderAndIsr:
        """Another leader, or the same, in a new epoch; the ISR stays unless one is given."""
        members = self.isr if isr is None else tuple(isr)
        return replace(self, leader=leader, isr=members, leader_epoch=self.leader_epoch + 1)

    def is_met_by(self, current: LeaderAndIsr) -> bool:
        """The proposed state is there already; the proposal may have an older partition epoch."""
        return self.partition_epoch <= current.partition_epoch and current == replace(
            self, partition_epoch=current.partition_epoch
        )

    def state(self, controller_epoch: int) -> PartitionState:
        """The text of the state znode, as the controller of an epoch writes it."""
        return PartitionState(
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            controller_epoch=controller_epoch,
            isr=self.isr,
            leader_recovery_state=self.recovery_state,
        )


class Leadership(Value):
    """Leader and ISR, and the epoch of the controller that wrote them."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int

    @classmethod
    def read(cls, data: bytes, version: int) -> Leadership:
        """The state znode and its version."""
        state = PartitionState.from_json(data)
        leader_and_isr = LeaderAndIsr(
            leader=state.leader,
            isr=state.isr,
            leader_epoch=state.leader_epoch,
            partition_epoch=version,
            recovery_state=state.leader_recovery_state,
        )
        return cls(leader_and_isr, state.controller_epoch)
