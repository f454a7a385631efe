"""The Produce request of one batch, with the number that a producer with an id gives it."""

from __future__ import annotations

from minicluster.clients.client import TopicPartition
from minicluster.log import Record, RecordBatch, Records
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL_BIT
from minicluster.protocol.messages import ProduceRequest

NUMBERLESS = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


def produce_request(
    place: TopicPartition,
    *records: Record,
    acks: int,
    timeout_ms: int,
    numbered: tuple[int, int, int] = NUMBERLESS,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A batch of records for one partition.

    Shapes:  numbered: producer id, producer epoch, sequence (KIP-98).
    """
    producer_id, epoch, sequence = numbered
    batch = RecordBatch.of(
        records,
        leader_epoch=-1,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=0 if transactional_id is None else TRANSACTIONAL_BIT,
    )
    data = ProduceRequest.PartitionProduceData(index=place[1], records=Records((batch,)))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(ProduceRequest.TopicProduceData(name=place[0], partition_data=(data,)),),
    )
