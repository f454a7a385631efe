"""ApiVersions (18): the requests that this node serves, in which versions, and the features.

Versions:  0-4; features from 3 on (KIP-584), those with a lowest level of 0 from 4 on, the
           software of the client from 3 on (KIP-511).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from minicluster.broker.api_state import ApiState
from minicluster.java_order import hash_map_order, room_of_copy, string_hash
from minicluster.metadata.metadata_version import FEATURE_NAME, KRAFT_VERSION
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)
_NAMES_SOFTWARE = 3
_TAKES_LEVEL_0 = 4


def api_versions(
    state: ApiState, request: ApiVersionsRequest, version: int, served: Mapping[int, range]
) -> ApiVersionsResponse:
    """The served versions of every API.

    Errors:  INVALID_REQUEST for a client whose software has no proper name or version.
    Source:  KafkaApis.handleApiVersionsRequest, ApiVersionsRequest.isValid.
    """
    software = (request.client_software_name, request.client_software_version)
    if version >= _NAMES_SOFTWARE and not all(map(_SOFTWARE.fullmatch, software)):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    supported = state.config.features
    finalized = state.image.features.finalized()
    if state.kraft_version:
        finalized[KRAFT_VERSION] = state.kraft_version
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersionsResponse.ApiVersion(
                api_key=key, min_version=versions[0], max_version=versions[-1]
            )
            for key, versions in served.items()
        ),
        supported_features=tuple(
            ApiVersionsResponse.SupportedFeatureKey(
                name=name, min_version=supported[name][0], max_version=supported[name][1]
            )
            for name in hash_map_order(supported, string_hash)
            # Older clients cannot read a range that begins at 0.
            if version >= _TAKES_LEVEL_0 or supported[name][0] > 0
        ),
        finalized_features_epoch=state.metadata_offset,
        finalized_features=tuple(
            ApiVersionsResponse.FinalizedFeatureKey(
                name=name, max_version_level=finalized[name], min_version_level=finalized[name]
            )
            for name in _finalized_order(finalized)
        ),
    )


def _finalized_order(levels: Mapping[str, int]) -> list[str]:
    """The order of FinalizedFeatures: a copied map, which gets the metadata.version last."""
    names = [name for name in levels if name != FEATURE_NAME]
    last = [FEATURE_NAME] if FEATURE_NAME in levels else []
    return hash_map_order([*names, *last], string_hash, room_of_copy(len(names)))
