"""Below IBP 2.7-IV2 the leader writes its ISR into ZooKeeper, and notifies the controller later.

The write is guarded by the version of the znode and by nothing else: a leader that another one has
followed may still write, if the controller has not written since (KIP-497 begins with that).

Units:   changes are looked at every 2.5 s; they are notified of after 5 s without another one, and
         after 60 s in any case.
Source:  KIP-497; kafka.server.ZkAlterPartitionManager,
         kafka.utils.ReplicationUtils.checkLeaderAndIsrZkData.
"""

from __future__ import annotations

from msgspec import Struct, field

from minicluster.faults import Faults
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import Planted, step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code, Create, GetData, SetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import encode_partitions
from minicluster.zookeeper.znodes.partition_state import PartitionState

CHECK_INTERVAL_MS = 2_500
LINGER_MS = 5_000
MAX_DELAY_MS = 60_000
TIMER = "isr-change-propagation"


class _Changes(Struct):
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    last_change_ms: int = 0
    last_propagation_ms: int = 0


class IsrWriter(Planted):
    """The ISR changes of one broker that the controller has not been notified of."""

    def __init__(self, broker: int, now_ms: int, faults: Faults = Faults.NONE) -> None:
        super().__init__(faults)
        self._broker = broker
        self._changes = _Changes(last_change_ms=now_ms, last_propagation_ms=now_ms)

    def write(
        self,
        request: AlterPartitionRequest,
        names: dict[object, str],
        controller_epochs: dict[TopicPartition, int],
        now_ms: int,
    ) -> Process[AlterPartitionResponse]:
        """Write a leader's proposal, and respond in the place of the controller.

        Shapes:  names of topics by id; the controller epoch of the last LeaderAndIsr of each
                 partition.
        """
        topics = []
        for topic in request.topics:
            name = names.get(topic.topic_id, topic.topic_name)
            partitions = []
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                isr = data.new_isr or tuple(member.broker_id for member in data.new_isr_with_epochs)
                epoch = controller_epochs.get(partition, 0)
                state = PartitionState(
                    leader=self._broker,
                    leader_epoch=data.leader_epoch,
                    controller_epoch=epoch,
                    isr=isr,
                )
                response = yield from self._write(partition, state, data.partition_epoch, now_ms)
                partitions.append(response)
            topics.append(
                AlterPartitionResponse.TopicData(
                    topic_name=topic.topic_name,
                    topic_id=topic.topic_id,
                    partitions=tuple(partitions),
                )
            )
        return AlterPartitionResponse(topics=tuple(topics))

    def _write(
        self, partition: TopicPartition, state: PartitionState, version: int, now_ms: int
    ) -> Process[AlterPartitionResponse.PartitionData]:
        write = state_write(self, partition, state, version)
        (result,) = yield (write,)
        if result.code is Code.BADVERSION:  # a write that was sent again may be its own rival
            (current,) = yield (GetData(write.path),)
            if current.ok and PartitionState.from_json(current.data or b"") == state:
                result = current
        if not result.ok:
            is_outdated = result.code in (Code.BADVERSION, Code.NONODE)
            code = (
                ErrorCode.INVALID_UPDATE_VERSION if is_outdated else ErrorCode.UNKNOWN_SERVER_ERROR
            )
            return AlterPartitionResponse.PartitionData(
                partition_index=partition.partition, error_code=code
            )
        assert result.stat is not None, result
        self._changes.partitions[partition] = None
        self._changes.last_change_ms = now_ms
        return AlterPartitionResponse.PartitionData(
            partition_index=partition.partition,
            leader_id=self._broker,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            partition_epoch=result.stat.version,
        )

    @step
    def propagate(self, now_ms: int) -> Process[None]:
        """Notify the controller of all changes by one znode, if it is time for it."""
        changes = self._changes
        lingered = changes.last_change_ms + LINGER_MS < now_ms
        overdue = changes.last_propagation_ms + MAX_DELAY_MS < now_ms
        if not changes.partitions or not (lingered or overdue):
            return
        partitions = tuple(changes.partitions)
        changes.partitions.clear()
        changes.last_propagation_ms = now_ms
        yield (Create(paths.ISR_CHANGE_PREFIX, encode_partitions(partitions), sequential=True),)


@step
def state_write(
    writer: IsrWriter, partition: TopicPartition, state: PartitionState, version: int
) -> SetData:
    """The write of a state where the znode still has the version that the leader has decided on.

    Otherwise it would undo what the controller has written meanwhile.
    """
    return SetData(paths.partition_state(partition), state.to_json().encode(), version)
