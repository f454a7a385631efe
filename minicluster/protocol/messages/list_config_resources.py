"""ListConfigResources (api key 74): the resources that have configs.

KIP-1142; v0 is ListClientMetricsResources of Kafka 3.7 to 4.0.

Versions: 0-1, all flexible.
    1: resource_types; response resource_type.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=74, kind="request", versions="0-1", flexible="0+")
class ListConfigResourcesRequest(s.Message):
    resource_types: tuple[int, ...] = s.array("int8", "1+", default=())


@s.message(api_key=74, kind="response", versions="0-1", flexible="0+")
class ListConfigResourcesResponse(s.Message):
    class ConfigResource(s.Struct):
        resource_name: str = s.string("0+", default="")
        resource_type: int = s.int8("1+", default=16, ignorable=True)

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    config_resources: tuple[ConfigResource, ...] = s.array("ConfigResource", "0+", default=())


API = api(
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    kafka_3_9="0",
    kafka_4_3="0-1",
)
