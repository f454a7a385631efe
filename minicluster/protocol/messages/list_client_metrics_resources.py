"""ListClientMetricsResources (api key 74): the resources of client metrics.

KIP-714; Kafka 4.1 renamed it to ListConfigResources and gave it a version more.

Versions: 0, all flexible; Kafka 3.9 has 0, Kafka 4.3 has none.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=74, kind="request", versions="0", flexible="0+")
class ListClientMetricsResourcesRequest(s.Message):
    pass


@s.message(api_key=74, kind="response", versions="0", flexible="0+")
class ListClientMetricsResourcesResponse(s.Message):
    class ClientMetricsResource(s.Struct):
        name: str = s.string("0+", default="")

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    client_metrics_resources: tuple[ClientMetricsResource, ...] = s.array(
        "ClientMetricsResource", "0+", default=()
    )
