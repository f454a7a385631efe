"""The rights that each request of a user needs, and what its response says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.exchange.acls import CLUSTER, CLUSTER_NAME, GROUP, TOPIC, TRANSACTIONAL_ID
from minicluster.verify.exchange.exchange import Exchange, each

_DENIED_BY = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
# The right on each topic that a list of the response names.
_ON_TOPICS = {
    "Produce": ("WRITE", "responses"),
    "Fetch": ("READ", "responses"),
    "Metadata": ("DESCRIBE", "topics"),
    "DescribeTopicPartitions": ("DESCRIBE", "topics"),
    "ListOffsets": ("DESCRIBE", "topics"),
    "OffsetForLeaderEpoch": ("DESCRIBE", "topics"),
    "OffsetCommit": ("READ", "topics"),
    "TxnOffsetCommit": ("READ", "topics"),
    "OffsetDelete": ("READ", "topics"),
    "AddPartitionsToTxn": ("WRITE", "resultsByTopicV3AndBelow"),
    "DescribeProducers": ("READ", "topics"),
    "CreateTopics": ("CREATE", "topics"),
    "CreatePartitions": ("ALTER", "results"),
    "DeleteTopics": ("DELETE", "responses"),
    "DeleteRecords": ("DELETE", "topics"),
}
_ON_GROUPS = {
    "OffsetFetch": ("DESCRIBE", "groups"),
    "DescribeGroups": ("DESCRIBE", "groups"),
    "ConsumerGroupDescribe": ("DESCRIBE", "groups"),
    "DeleteGroups": ("DELETE", "results"),
}
# The rights on what a field of the request names, or on the cluster: all of the response is about
# it.
_ON_THE_GROUP = {
    "JoinGroup": "READ",
    "SyncGroup": "READ",
    "Heartbeat": "READ",
    "LeaveGroup": "READ",
    "ConsumerGroupHeartbeat": "READ",
    "OffsetCommit": "READ",
    "TxnOffsetCommit": "READ",
    "AddOffsetsToTxn": "READ",
    "OffsetFetch": "DESCRIBE",
    "OffsetDelete": "DELETE",
}
_ON_THE_TRANSACTIONAL_ID = {
    "Produce": "transactionalId",
    "InitProducerId": "transactionalId",
    "AddPartitionsToTxn": "v3AndBelowTransactionalId",
    "AddOffsetsToTxn": "transactionalId",
    "TxnOffsetCommit": "transactionalId",
    "EndTxn": "transactionalId",
}
_ON_THE_CLUSTER = {
    "CreateAcls": "ALTER",
    "DeleteAcls": "ALTER",
    "DescribeAcls": "DESCRIBE",
    "ElectLeaders": "ALTER",
    "AlterPartitionReassignments": "ALTER",
    "ListPartitionReassignments": "DESCRIBE",
    "AlterUserScramCredentials": "ALTER",
    "DescribeUserScramCredentials": "DESCRIBE",
    "AlterClientQuotas": "ALTER_CONFIGS",
    "DescribeClientQuotas": "DESCRIBE_CONFIGS",
    "UpdateFeatures": "ALTER",
    "UnregisterBroker": "ALTER",
    "DescribeQuorum": "DESCRIBE",
}
_ON_CONFIGS = {
    "DescribeConfigs": ("DESCRIBE_CONFIGS", "results"),
    "AlterConfigs": ("ALTER_CONFIGS", "responses"),
    "IncrementalAlterConfigs": ("ALTER_CONFIGS", "responses"),
}
_CONFIGS_OF = {2: TOPIC, 4: CLUSTER, 8: CLUSTER, 32: GROUP}  # ConfigResource.Type
_COORDINATORS_OF = {0: GROUP, 1: TRANSACTIONAL_ID}  # FindCoordinatorRequest.CoordinatorType
_BY_BROKERS = {"DescribeAcls", "DescribeClientQuotas", "DescribeUserScramCredentials"}
_ABOUT_TOPICS = {"CreateTopics", "CreatePartitions", "DeleteTopics"}
_ALTER_CONFIGS = {"AlterConfigs", "IncrementalAlterConfigs"}
FORWARDED = {*_ON_THE_CLUSTER, *_ABOUT_TOPICS, *_ALTER_CONFIGS} - _BY_BROKERS
ALSO_ON_CLUSTER = ("CreateTopics", "DeleteTopics")


class Asked(NamedTuple):
    """One resource that a request is about, and the errors that its response has for it.

    Shapes:  right: the operation that it needs, such as WRITE.
    """

    right: str
    kind: str
    name: str
    errors: set[int]

    @property
    def is_denied(self) -> bool:
        """The response says that the right is missing."""
        return _DENIED_BY[self.kind] in self.errors

    @property
    def is_given(self) -> bool:
        """There is no error for the resource, or for a part of it."""
        return ErrorCode.NONE in self.errors


def asked_of(exchange: Exchange, topics: Mapping[str, str]) -> Iterator[Asked]:
    """The resources of a request; one without a name, or without an error of its own, decides
    nothing.

    Shapes:  topics: their names by id.
    """
    for right, kind, name, response in _named(exchange, topics):
        errors = _errors(response)
        if name and errors:
            yield Asked(right, kind, name, errors)


def _named(
    exchange: Exchange, topics: Mapping[str, str]
) -> Iterator[tuple[str, str, str | None, Any]]:
    """Each right with the resource and the part of the response that is about it."""
    api, request, response = exchange.api, exchange.request, exchange.response
    if api in _ON_TOPICS:
        right, named = _ON_TOPICS[api]
        for topic in each(response, named):
            name = topic.get("name") or topic.get("topic")
            name = name or topics.get(topic.get("topicId") or "")
            if name and not name.startswith("*"):  # of which no ACL can tell
                yield right, TOPIC, name, topic
    if api in _ON_GROUPS:
        right, named = _ON_GROUPS[api]
        for group in each(response, named):
            yield right, GROUP, group.get("groupId"), group
    if api in _ON_CONFIGS:
        right, named = _ON_CONFIGS[api]
        for resource in each(response, named):
            kind = _CONFIGS_OF.get(resource.get("resourceType", 0))
            if kind is not None:
                name = CLUSTER_NAME if kind == CLUSTER else resource.get("resourceName")
                yield right, kind, name, resource
    if api == "FindCoordinator" and request.get("keyType", 0) in _COORDINATORS_OF:
        kind = _COORDINATORS_OF[request.get("keyType", 0)]
        one = {"key": request.get("key"), "errorCode": response.get("errorCode", 0)}
        for coordinator in each(response, "coordinators") or (one,):
            yield "DESCRIBE", kind, coordinator.get("key"), coordinator
    if api in _ON_THE_GROUP:
        yield _ON_THE_GROUP[api], GROUP, request.get("groupId"), response
    if api in _ON_THE_TRANSACTIONAL_ID:
        field = _ON_THE_TRANSACTIONAL_ID[api]
        yield "WRITE", TRANSACTIONAL_ID, request.get(field), response
    if api in _ON_THE_CLUSTER:
        yield _ON_THE_CLUSTER[api], CLUSTER, CLUSTER_NAME, response


def _errors(value: Any) -> set[int]:
    """All error codes of a response, or of a part of it."""
    found: set[int] = set()
    for inner in value if isinstance(value, list) else ():
        found |= _errors(inner)
    for name, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, int) and name in ("errorCode", "partitionErrorCode"):
            found.add(inner)
        else:
            found |= _errors(inner)
    return found
