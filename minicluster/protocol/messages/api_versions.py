"""ApiVersions (api key 18): the requests and features that a node supports.

The response's header is always version 0, so that a client of any version can read it (KIP-511).

Versions: 0-4, flexible from 3.
    1: response throttle_time_ms.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: client_software_name, client_software_version; flexible; response supported_features,
        name, finalized_features_epoch, finalized_features, ….
    4: supported features whose lowest version is 0 are listed (KIP-1022).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=18, kind="request", versions="0-4", flexible="3+")
class ApiVersionsRequest(s.Message):
    client_software_name: str = s.string("3+", default="", ignorable=True)
    client_software_version: str = s.string("3+", default="", ignorable=True)


@s.message(api_key=18, kind="response", versions="0-4", flexible="3+")
class ApiVersionsResponse(s.Message):
    class ApiVersion(s.Struct):
        api_key: int = s.int16("0+", default=0)
        min_version: int = s.int16("0+", default=0)
        max_version: int = s.int16("0+", default=0)

    class SupportedFeatureKey(s.Struct):
        name: str = s.string("3+", default="")
        min_version: int = s.int16("3+", default=0)
        max_version: int = s.int16("3+", default=0)

    class FinalizedFeatureKey(s.Struct):
        name: str = s.string("3+", default="")
        max_version_level: int = s.int16("3+", default=0)
        min_version_level: int = s.int16("3+", default=0)

    error_code: int = s.int16("0+", default=0)
    api_keys: tuple[ApiVersion, ...] = s.array("ApiVersion", "0+", default=())
    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = s.array(
        "SupportedFeatureKey", "3+", default=(), tag=0, ignorable=True
    )
    finalized_features_epoch: int = s.int64("3+", default=-1, tag=1, ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = s.array(
        "FinalizedFeatureKey", "3+", default=(), tag=2, ignorable=True
    )
    zk_migration_ready: bool = s.boolean("3+", default=False, tag=3, ignorable=True)


API = api(
    ApiVersionsRequest,
    ApiVersionsResponse,
    kafka_3_9="0-4",
    kafka_4_3="0-4",
)
