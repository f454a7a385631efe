"""WriteTxnMarkers (api key 27): a coordinator writes the ends of transactions to their partitions.

Versions: 0-2, flexible from 1.
    1: flexible.
    2: transaction_version.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, partition_indexes


@s.message(api_key=27, kind="request", versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(s.Message):
    class WritableTxnMarkerTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partition_indexes: tuple[int, ...] = s.array("int32", "0+", default=())

    class WritableTxnMarker(s.Struct):
        producer_id: int = s.int64("0+", default=0, entity="producerId")
        producer_epoch: int = s.int16("0+", default=0)
        transaction_result: bool = s.boolean("0+", default=False)
        topics: tuple[WriteTxnMarkersRequest.WritableTxnMarkerTopic, ...] = s.array(
            "WritableTxnMarkerTopic", "0+", default=()
        )
        coordinator_epoch: int = s.int32("0+", default=0)
        transaction_version: int = s.int8("2+", default=0, ignorable=True)

    markers: tuple[WritableTxnMarker, ...] = s.array("WritableTxnMarker", "0+", default=())


@s.message(api_key=27, kind="response", versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(s.Message):
    class WritableTxnMarkerPartitionResult(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class WritableTxnMarkerTopicResult(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult, ...] = s.array(
            "WritableTxnMarkerPartitionResult", "0+", default=()
        )

    class WritableTxnMarkerResult(s.Struct):
        producer_id: int = s.int64("0+", default=0, entity="producerId")
        topics: tuple[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult, ...] = s.array(
            "WritableTxnMarkerTopicResult", "0+", default=()
        )

    markers: tuple[WritableTxnMarkerResult, ...] = s.array(
        "WritableTxnMarkerResult", "0+", default=()
    )


API = api(
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    kafka_3_9="0-1",
    kafka_4_3="1-2",
    error=ErrorShape(
        {
            "markers": Each(
                ("markers",),
                inside={
                    "topics": Each(
                        ("topics",), inside={"partitions": partition_indexes("partition_indexes")}
                    )
                },
            )
        }
    ),
)
