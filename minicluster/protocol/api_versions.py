"""The versions of each request that a broker of each release supports.

Source:  the validVersions of Kafka's messages; ApiKeys (Produce is offered from 0 on in 4.x for
         old clients that look for it, KAFKA-18659).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.rules import Rules

Versions = tuple[int, int]

_PRODUCE = 0
_PRODUCE_ENABLED_FROM = 3

_KAFKA_4: Mapping[int, Versions] = {
    0: (0, 13),  # Produce
    1: (4, 18),  # Fetch
    2: (1, 11),  # ListOffsets
    3: (0, 13),  # Metadata
    8: (2, 10),  # OffsetCommit
    9: (1, 10),  # OffsetFetch
    10: (0, 6),  # FindCoordinator
    11: (0, 9),  # JoinGroup
    12: (0, 4),  # Heartbeat
    13: (0, 5),  # LeaveGroup
    14: (0, 5),  # SyncGroup
    15: (0, 6),  # DescribeGroups
    16: (0, 5),  # ListGroups
    18: (0, 4),  # ApiVersions
    19: (2, 7),  # CreateTopics
    20: (1, 6),  # DeleteTopics
    21: (0, 2),  # DeleteRecords
    22: (0, 5),  # InitProducerId
    23: (2, 4),  # OffsetForLeaderEpoch
    24: (0, 5),  # AddPartitionsToTxn
    25: (0, 4),  # AddOffsetsToTxn
    26: (0, 5),  # EndTxn
    27: (1, 2),  # WriteTxnMarkers
    28: (0, 5),  # TxnOffsetCommit
    29: (1, 3),  # DescribeAcls
    30: (1, 3),  # CreateAcls
    31: (1, 3),  # DeleteAcls
    32: (1, 4),  # DescribeConfigs
    33: (0, 2),  # AlterConfigs
    34: (1, 2),  # AlterReplicaLogDirs
    35: (1, 5),  # DescribeLogDirs
    37: (0, 3),  # CreatePartitions
    38: (1, 3),  # CreateDelegationToken
    39: (1, 2),  # RenewDelegationToken
    40: (1, 2),  # ExpireDelegationToken
    41: (1, 3),  # DescribeDelegationToken
    42: (0, 2),  # DeleteGroups
    43: (0, 2),  # ElectLeaders
    44: (0, 1),  # IncrementalAlterConfigs
    45: (0, 1),  # AlterPartitionReassignments
    46: (0, 0),  # ListPartitionReassignments
    47: (0, 0),  # OffsetDelete
    56: (2, 3),  # AlterPartition
    57: (0, 2),  # UpdateFeatures
    60: (0, 2),  # DescribeCluster
    62: (0, 4),  # BrokerRegistration
    63: (0, 2),  # BrokerHeartbeat
    64: (0, 0),  # UnregisterBroker
    65: (0, 0),  # DescribeTransactions
    66: (0, 2),  # ListTransactions
    67: (0, 0),  # AllocateProducerIds
    73: (0, 0),  # AssignReplicasToDirs
    74: (0, 1),  # ListConfigResources
    80: (0, 1),  # AddRaftVoter
    81: (0, 0),  # RemoveRaftVoter
}
_KAFKA_3_9: Mapping[int, Versions] = {
    **{key: (0, high) for key, (_, high) in _KAFKA_4.items()},
    0: (0, 11),
    1: (0, 17),
    2: (0, 9),
    3: (0, 12),
    8: (0, 9),
    9: (0, 9),
    15: (0, 5),
    26: (0, 4),
    27: (0, 1),
    28: (0, 4),
    35: (0, 4),
    45: (0, 0),
    52: (0, 1),
    57: (0, 1),
    60: (0, 1),
    63: (0, 1),
    66: (0, 1),
    74: (0, 0),
    80: (0, 0),
}


def versions_of(rules: Rules) -> Mapping[int, Versions]:
    """The lowest and the highest version of each request, by API key."""
    return _KAFKA_4 if rules.drops_old_request_versions else _KAFKA_3_9


def limited_versions(rules: Rules, requests: Iterable[type[Any]]) -> Mapping[int, range]:
    """The versions of these requests that a node of the release serves, by API key.

    Source:  ApiVersionsResponse.filterApis.
    """
    limits = versions_of(rules)
    served = {}
    for request in requests:
        valid = request.valid_versions
        low, high = limits.get(request.api_key, (valid[0], valid[-1]))
        if max(low, valid[0]) <= high:
            served[request.api_key] = range(low, min(high, valid[-1]) + 1)
    return served


def enabled_versions(rules: Rules, advertised: Mapping[int, range]) -> Mapping[int, range]:
    """The versions that are handled, of those that a node advertises.

    Source:  ApiKeys.isVersionEnabled, PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION (KAFKA-18659).
    """
    if not rules.drops_old_request_versions or _PRODUCE not in advertised:
        return advertised
    produce = advertised[_PRODUCE]
    return {**advertised, _PRODUCE: range(_PRODUCE_ENABLED_FROM, produce.stop)}


def highest_version(rules: Rules, request: Any) -> int:
    """The version of a request between brokers and controllers of one release."""
    limits = versions_of(rules).get(request.api_key)
    return int(request.latest_version if limits is None else limits[1])
