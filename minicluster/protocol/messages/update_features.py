"""UpdateFeatures (api key 57): a client finalizes feature levels at the controller.

KIP-584, KIP-778.

Versions: 0-2, all flexible.
    1: upgrade_type, validate_only; without allow_downgrade.
    2: response without results, feature.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=57, kind="request", versions="0-2", flexible="0+")
class UpdateFeaturesRequest(s.Message):
    class FeatureUpdateKey(s.Struct):
        feature: str = s.string("0+", default="")
        max_version_level: int = s.int16("0+", default=0)
        allow_downgrade: bool = s.boolean("0", default=False)
        upgrade_type: int = s.int8("1+", default=1)

    timeout_ms: int = s.int32("0+", default=60000)
    feature_updates: tuple[FeatureUpdateKey, ...] = s.array("FeatureUpdateKey", "0+", default=())
    validate_only: bool = s.boolean("1+", default=False)


@s.message(api_key=57, kind="response", versions="0-2", flexible="0+")
class UpdateFeaturesResponse(s.Message):
    class UpdatableFeatureResult(s.Struct):
        feature: str = s.string("0+", default="")
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
    results: tuple[UpdatableFeatureResult, ...] = s.array(
        "UpdatableFeatureResult", "0-1", default=(), ignorable=True
    )


API = api(
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-2",
    forwardable=True,
)
