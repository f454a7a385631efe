"""DescribeCluster (api key 60): the nodes of the cluster.

KIP-700, KIP-919.

Versions: 0-2, all flexible.
    1: endpoint_type; response endpoint_type.
    2: include_fenced_brokers; response is_fenced.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=60, kind="request", versions="0-2", flexible="0+")
class DescribeClusterRequest(s.Message):
    include_cluster_authorized_operations: bool = s.boolean("0+", default=False)
    endpoint_type: int = s.int8("1+", default=1)
    include_fenced_brokers: bool = s.boolean("2+", default=False)


@s.message(api_key=60, kind="response", versions="0-2", flexible="0+")
class DescribeClusterResponse(s.Message):
    class DescribeClusterBroker(s.Struct):
        broker_id: int = s.int32("0+", default=0, entity="brokerId")
        host: str = s.string("0+", default="")
        port: int = s.int32("0+", default=0)
        rack: str | None = s.string("0+", default=None, nullable="0+")
        is_fenced: bool = s.boolean("2+", default=False)

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default=None, nullable="0+")
    endpoint_type: int = s.int8("1+", default=1)
    cluster_id: str = s.string("0+", default="")
    controller_id: int = s.int32("0+", default=-1, entity="brokerId")
    brokers: tuple[DescribeClusterBroker, ...] = s.array("DescribeClusterBroker", "0+", default=())
    cluster_authorized_operations: int = s.int32("0+", default=-2147483648)


API = api(
    DescribeClusterRequest,
    DescribeClusterResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-2",
)
