"""The partitions of an internal topic, for the coordinator on the same broker.

Source:  CoordinatorPartitionWriter, CoordinatorLoaderImpl; ReplicaManager.appendRecordsToLeader,
         ListenerAdaptor.onHighWatermarkUpdated.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.coordinator.runtime.internal_log import (
    AppendFailed,
    EndTxnMarker,
    Producer,
    Verified,
)
from minicluster.log import Record, RecordBatch
from minicluster.log.batch import NO_SEQUENCE, TRANSACTIONAL_BIT
from minicluster.log.format.compression import Codec
from minicluster.log.records import packed
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.leader_log import (
    ACKS_ALL,
    append_records_to_leader,
    check_enough_replicas,
)
from minicluster.replica.partition.partition import Partition
from minicluster.replica.producers.markers import EndTransactionMarker, marker_batch
from minicluster.replica.producers.states import AppendCheck, AppendOrigin
from minicluster.replica.producers.verification import (
    Errors,
    Guards,
    TransactionSupportedOperation,
    TransactionToVerify,
)
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.purgatory import Key

_GENERIC_ERROR_FROM = 4  # of TxnOffsetCommit


class InternalTopic:
    """One internal topic; who writes here performs the effects of the replica manager next.

    Shapes:  codec: of the batches of records; markers are never compressed.
    """

    def __init__(self, state: ReplicaManagerState, topic: str, codec: Codec = Codec.NONE) -> None:
        self._state = state
        self.topic = topic
        self._codec = codec
        self._image: MetadataImage | None = None
        self._led_partitions: dict[int, Partition] = {}  # here, by that image
        self._reported: list[int | None] = []  # high watermarks of these, in their order

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: Producer | None,
        now_ms: int,
    ) -> int:
        """Append one batch as with acks=all; the offset behind it.

        Errors:  AppendFailed with the error that a producer would get.
        """
        date_ms = self._state.date_ms(now_ms)
        batch_records = [Record(i, date_ms, key, value) for i, (key, value) in enumerate(records)]
        if producer is None:
            batch = RecordBatch.of(batch_records, leader_epoch=-1)
        else:
            batch = RecordBatch.of(
                batch_records,
                leader_epoch=-1,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                attributes=TRANSACTIONAL_BIT,
            )
        verifier = self._state.verifier
        how = AppendCheck(
            origin=AppendOrigin.COORDINATOR,
            guard=None if producer is None else producer.guard,
            verifies=verifier is not None and verifier.is_enabled,
        )
        return self._append(partition, packed(batch, self._codec), how, now_ms)

    def append_end_txn_marker(self, partition: int, marker: EndTxnMarker, now_ms: int) -> int:
        """Append the end of a transaction; the offset behind it.

        Errors:  AppendFailed, as ``append``.
        """
        content = EndTransactionMarker(marker.committed, marker.coordinator_epoch)
        date_ms = self._state.date_ms(now_ms)
        batch = marker_batch(content, marker.producer_id, marker.producer_epoch, date_ms)
        how = AppendCheck(
            origin=AppendOrigin.COORDINATOR, transaction_version=marker.transaction_version
        )
        return self._append(partition, batch, how, now_ms)

    def _append(self, partition: int, batch: RecordBatch, how: AppendCheck, now_ms: int) -> int:
        state = self._state
        key = self._key(partition)
        try:
            local = state.partition(key)
            appended = append_records_to_leader(local, batch, ACKS_ALL, now_ms, how=how)
        except ReplicaError as rejection:
            raise AppendFailed(rejection.error, str(rejection)) from rejection
        assert key is not None
        if appended.high_watermark_increased:
            state.delayed.check_and_complete_all(key, now_ms)
        else:
            state.delayed.fetches.check_and_complete(key, now_ms)
        return appended.last_offset + 1

    def verify(self, partition: int, producer: Producer, done: Verified, now_ms: int) -> None:
        """Verify the transaction of a producer by its coordinator, or add the partition to it."""
        verifier, place = self._state.verifier, (self.topic, partition)
        assert verifier is not None, "a broker with coordinators has a verifier"

        def on_guarded(errors: Errors, guards: Guards, at_ms: int) -> None:
            done(errors.get(place, ErrorCode.NONE), guards.get(place), at_ms)

        transaction = TransactionToVerify(
            producer.transactional_id,
            producer.producer_id,
            producer.producer_epoch,
            TransactionSupportedOperation.of_version(producer.version, _GENERIC_ERROR_FROM),
        )
        verifier.verify(transaction, {place: NO_SEQUENCE}, on_guarded, now_ms)

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[RecordBatch]:
        """Batches of the local log from an offset on; none where this broker has no replica."""
        local = self._local(partition)
        if local is None or offset >= local.log_end_offset:
            return ()
        return local.log.read(offset, max_bytes)

    def start_offset(self, partition: int) -> int:
        """The first offset of the local log."""
        local = self._local(partition)
        return 0 if local is None else local.log_start_offset

    def high_watermark(self, partition: int) -> int:
        """The local high watermark."""
        local = self._local(partition)
        return 0 if local is None else local.high_watermark

    def error_of_committed(self, partition: int) -> ErrorCode:
        """The error of an append whose record is committed."""
        local = self._local(partition)
        if local is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return check_enough_replicas(local, local.high_watermark).error

    def take_risen_high_watermarks(self) -> list[tuple[int, int]]:
        """Each partition that this broker leads whose high watermark has risen since the last call.

        Shapes:  (partition, high watermark).
        """
        if self._state.image is not self._image:
            self._find_led_partitions()
        if not self._led_partitions:
            return []
        marks = [local.replica_log.high_watermark for local in self._led_partitions.values()]
        before = self._reported
        if marks == before:
            return []
        self._reported = [*marks]
        marked = zip(self._led_partitions, before, marks, strict=True)
        return [(index, mark) for index, reported, mark in marked if mark != reported]

    def _find_led_partitions(self) -> None:
        """Look replicas up once for each image, since only a new image changes their roles."""
        self._image = image = self._state.image
        topic = image.topics.named(self.topic)
        indexes = () if topic is None else sorted(topic.partitions)  # a map has no order of its own
        replicas = ((index, self._local(index)) for index in indexes)
        reported = {
            id(local): mark
            for local, mark in zip(self._led_partitions.values(), self._reported, strict=True)
        }
        self._led_partitions = {
            index: local for index, local in replicas if local is not None and local.is_leader
        }
        self._reported = [reported.get(id(local)) for local in self._led_partitions.values()]

    def _key(self, partition: int) -> Key | None:
        return self._state.key_of(self.topic, ZERO_UUID, partition, version=0)

    def _local(self, partition: int) -> Partition | None:
        key = self._key(partition)
        return None if key is None else self._state.partitions.get(key)
