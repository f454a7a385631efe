"""Which right each API of a broker needs, in Kafka's order; the table is at the end.

What a broker forwards is authorized by the controller, with the client's own principal; a broker
asks for rights only where it responds itself. By name the right comes before existence, so that
nobody learns which names there are; by id existence comes first, for ids are no secret. A group or
a transactional id comes before the topics: without it, no topic is looked at.

Source:  KafkaApis, AclApis, AuthHelper; KIP-11, KIP-430 (authorized operations).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any
from uuid import UUID

from minicluster.metadata.authorized_operations import (
    ON_CLUSTER,
    ON_GROUP,
    ON_TOPIC,
)
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_items, error_response
from minicluster.security.acls import CLUSTER_NAME, Operation, ResourceType
from minicluster.security.authorizer import NeverDecided
from minicluster.security.screening import (
    CLOSES,
    FAILED,
    Access,
    Asked,
    Rejected,
    Screen,
    Screened,
    as_requested,
    by_name,
    cluster,
    each,
    in_order,
    joined,
    of_acls,
    open_to_all,
    whole,
    without,
)
from minicluster.values import replace

_READ, _WRITE, _DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_CLUSTER, _TRANSACTIONAL_ID = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
_NO_ID = UUID(int=0)
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_TRANSACTIONAL_BIT = 0x10  # of a batch's attributes
_ATTRIBUTES = slice(21, 23)  # of a batch in its bytes


def _itself(item: Any, image: MetadataImage) -> str:
    return str(item)


# -- records -----------------------------------------------------------------------------


def _transactional_id_of_batches(request: m.ProduceRequest) -> str | None:
    """The transactional id, which only transactional batches need a right for."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            first = bytes(partition.records or b"")[_ATTRIBUTES]
            if int.from_bytes(first, "big") & _TRANSACTIONAL_BIT:
                return request.transactional_id or ""
    return None


_produced_topics = in_order(
    whole(_WRITE, _TRANSACTIONAL_ID, _transactional_id_of_batches),
    each("topic_data", _WRITE, _TOPIC, by_name),
)


def _produced(asked: Asked) -> Screened | Rejected:
    """WRITE of the transactional id, then of each topic.

    With acks=0 there is no response to have an error: what may be written is, and the connection
    ends.
    """
    screened = _produced_topics(asked)
    if asked.request.acks != 0:
        return _grouped(screened) if isinstance(screened, Rejected) else screened
    if isinstance(screened, Rejected):
        return Rejected(CLOSES)
    if screened.request is asked.request:
        return Screened(asked.request)
    return Screened(screened.request, lambda response: CLOSES)


def _grouped(rejected: Rejected) -> Rejected:
    """One entry of a response for each topic, also where the request has several."""
    topics: dict[Any, Any] = {}
    for topic in rejected.response.responses:
        before = topics.setdefault((topic.name, topic.topic_id), topic)
        if before is not topic:
            partitions = before.partition_responses + topic.partition_responses
            merged = replace(before, partition_responses=partitions)
            topics[topic.name, topic.topic_id] = merged
    return Rejected(replace(rejected.response, responses=tuple(topics.values())))


def _described_producers(asked: Asked) -> Screened | Rejected:
    """READ of each topic; the error has a text here."""
    screened = each("topics", _READ, _TOPIC, by_name)(asked)
    assert isinstance(screened, Screened)
    failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def told(partition: Any) -> Any:
        if partition.error_code != failed:
            return partition
        return replace(partition, error_message="Topic authorization failed.")

    def complete(response: Any) -> Any:
        completed = screened.complete(response)
        topics = (
            replace(topic, partitions=tuple(map(told, topic.partitions)))
            for topic in completed.topics
        )
        return replace(completed, topics=tuple(topics))

    return Screened(screened.request, complete)


def _offsets_for_leader_epoch(asked: Asked) -> Screened | Rejected:
    """Followers have CLUSTER_ACTION; who has not needs DESCRIBE of each topic."""
    if asked.access.may_on_cluster(Operation.CLUSTER_ACTION):
        return Screened(asked.request)
    return each("topics", _DESCRIBE, _TOPIC, by_name)(asked)


# -- metadata ----------------------------------------------------------------------------


def _metadata(asked: Asked) -> Screened | Rejected:
    """Only topics with DESCRIBE are shown; those on demand need CREATE besides.

    Errors:  TOPIC_AUTHORIZATION_FAILED for what was named: by name without its id, by id without
             its name. Among all topics, others are left out.
    """
    request, access = asked.request, asked.access
    wants_all = request.topics is None or (asked.version == 0 and not request.topics)
    denied, by_id = [], []
    for topic in () if wants_all else request.topics:
        name = by_name(topic, asked.image)
        if name is None or access.may(_DESCRIBE, _TOPIC, name):
            if name is not None and not _may_be_created(asked, name):
                denied.append(topic)
        elif topic.topic_id != _NO_ID:
            by_id.append(topic)
        else:
            denied.append(topic)
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    kind = m.MetadataResponse.MetadataResponseTopic
    rejected = tuple(
        [kind(error_code=error, name=t.name, is_internal=t.name in _INTERNAL) for t in denied]
        + [kind(error_code=error, name=None, topic_id=t.topic_id) for t in by_id]
    )

    def complete(response: Any) -> Any:
        shown = [t for t in response.topics if not wants_all or _may_describe(access, t.name)]
        if request.include_topic_authorized_operations:
            shown = [_with_operations(access, topic) for topic in shown]
        values: dict[str, Any] = {"topics": (*shown, *rejected)}
        if request.include_cluster_authorized_operations:
            values["cluster_authorized_operations"] = _on_cluster(access)
        return replace(response, **values)

    if rejected:
        dropped = {id(topic) for topic in (*denied, *by_id)}
        left = tuple(topic for topic in request.topics if id(topic) not in dropped)
        request = replace(request, topics=left)
    return Screened(request, complete)


def _may_be_created(asked: Asked, name: str) -> bool:
    """Whether a topic exists, or may be made on demand, if it would be."""
    if not (asked.creates_topics and asked.request.allow_auto_topic_creation):
        return True
    if asked.image.topics.named(name) is not None:
        return True
    access = asked.access
    return access.may_on_cluster(Operation.CREATE) or access.may(Operation.CREATE, _TOPIC, name)


def _described_topic_partitions(asked: Asked) -> Screened | Rejected:
    """Only topics with DESCRIBE, from the cursor on; their operations always."""
    access, request = asked.access, asked.request
    if not request.topics:
        return _all_topic_partitions(asked)
    denied = [t for t in request.topics if not access.may(_DESCRIBE, _TOPIC, t.name)]
    kind = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rejected = tuple(
        kind(error_code=error, name=topic.name, is_internal=topic.name in _INTERNAL)
        for topic in denied
    )
    if denied and len(denied) == len(request.topics):
        return Rejected(m.DescribeTopicPartitionsResponse(topics=rejected))

    def complete(response: Any) -> Any:
        topics = (_with_operations(access, topic) for topic in response.topics)
        return replace(response, topics=(*topics, *rejected))

    dropped = {topic.name for topic in denied}
    left = tuple(topic for topic in request.topics if topic.name not in dropped)
    return Screened(replace(request, topics=left), complete)


def _all_topic_partitions(asked: Asked) -> Screened | Rejected:
    """The topics with DESCRIBE by their names: the limit of a response counts no others."""
    access, request, cursor = asked.access, asked.request, asked.request.cursor
    first = "" if cursor is None else cursor.topic_name
    names = sorted(
        topic.name
        for topic in asked.image.topics
        if topic.name >= first and access.may(_DESCRIBE, _TOPIC, topic.name)
    )
    if cursor is not None and cursor.partition_index < 0:
        return Screened(request)  # which the handler rejects
    if not names:
        return Rejected(m.DescribeTopicPartitionsResponse())
    kind = m.DescribeTopicPartitionsRequest.TopicRequest
    named = replace(
        request,
        topics=tuple(kind(name=name) for name in names),
        cursor=cursor if first == names[0] else None,
    )

    def complete(response: Any) -> Any:
        topics = tuple(_with_operations(access, topic) for topic in response.topics)
        return replace(response, topics=topics)

    return Screened(named, complete)


def _may_describe(access: Access, name: str | None) -> bool:
    return name is None or access.may(_DESCRIBE, _TOPIC, name)


def _with_operations(access: Access, topic: Any) -> Any:
    """A topic with what the client may do; also one that does not exist, unless by its id."""
    if topic.name is None:
        return topic
    operations = access.operations(_TOPIC, topic.name, ON_TOPIC)
    return replace(topic, topic_authorized_operations=operations)


def _on_cluster(access: Access) -> int:
    """The operations on the cluster, none for who may not describe it."""
    if not access.may_on_cluster(_DESCRIBE):
        return 0
    return access.operations(_CLUSTER, CLUSTER_NAME, ON_CLUSTER)


def _described_cluster(asked: Asked) -> Screened:
    """Anybody may ask; the operations need DESCRIBE."""

    def complete(response: Any) -> Any:
        has_failed = response.error_code != ErrorCode.NONE
        if has_failed or not asked.request.include_cluster_authorized_operations:
            return response
        return replace(response, cluster_authorized_operations=_on_cluster(asked.access))

    return Screened(asked.request, complete)


# -- groups ------------------------------------------------------------------------------


def _group(request: Any) -> str:
    return str(request.group_id)


def _subscribed(asked: Asked) -> Screened | Rejected:
    """A heartbeat needs DESCRIBE of each topic that is subscribed by name."""
    names = asked.request.subscribed_topic_names or ()
    if all(asked.access.may(_DESCRIBE, _TOPIC, name) for name in names):
        return Screened(asked.request)
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return Rejected(error_response(asked.request, error, version=asked.version))


def _coordinators(asked: Asked) -> Screened | Rejected:
    """DESCRIBE of a group or a transactional id; before version 4 of one, then of each key."""
    request, access = asked.request, asked.access
    resource_type = {0: _GROUP, 1: _TRANSACTIONAL_ID}.get(request.key_type)
    if request.key_type == 2 and not access.may_on_cluster(Operation.CLUSTER_ACTION):  # share
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return Rejected(error_response(request, error, version=asked.version))
    if resource_type is None:
        return Screened(request)
    if asked.version < 4:  # one key
        return whole(_DESCRIBE, resource_type, lambda r: str(r.key))(asked)
    denied = [k for k in request.coordinator_keys if not access.may(_DESCRIBE, resource_type, k)]
    kind = m.FindCoordinatorResponse.Coordinator
    rejected = m.FindCoordinatorResponse(
        coordinators=tuple(
            kind(key=key, node_id=-1, host="", port=-1, error_code=FAILED[resource_type])
            for key in denied
        )
    )
    if denied and len(denied) == len(request.coordinator_keys):
        return Rejected(rejected)
    left = tuple(key for key in request.coordinator_keys if key not in denied)

    def complete(response: Any) -> Any:
        coordinators = as_requested(
            request.coordinator_keys,
            response.coordinators + rejected.coordinators,
            lambda found: found.key,
        )
        return replace(response, coordinators=coordinators)

    return Screened(replace(request, coordinator_keys=left), complete)


def _committed_offsets(asked: Asked) -> Screened | Rejected:
    """DESCRIBE of each group, then of the topics: among all topics, others are left out."""
    request, access, version = asked.request, asked.access, asked.version
    failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if version < 8:  # one group
        if not access.may(_DESCRIBE, _GROUP, request.group_id):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            return Rejected(error_response(request, error, version=version))
        if request.topics is None:
            return Screened(request, lambda response: _shown_offsets(access, response))
        denied = [t for t in request.topics if not access.may(_DESCRIBE, _TOPIC, t.name)]
        return without(asked, "topics", denied, failed)
    kind, rejected, kept = m.OffsetFetchResponse.OffsetFetchResponseGroup, [], []
    denied_topics: dict[str, tuple[Any, ...]] = {}
    for group in request.groups:
        if not access.may(_DESCRIBE, _GROUP, group.group_id):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            rejected.append(kind(group_id=group.group_id, error_code=error))
            continue
        topics = group.topics
        if topics is not None:
            names = {id(t): by_name(t, asked.image) for t in topics}
            unseen = tuple(t for t in topics if not _may_describe(access, names[id(t)]))
            denied_topics[group.group_id] = unseen
            group = replace(group, topics=tuple(t for t in topics if t not in unseen))
        kept.append(group)

    def complete(response: Any) -> Any:
        completed = []
        for group in response.groups:
            if group.error_code == ErrorCode.NONE:
                if group.group_id not in denied_topics:
                    group = _shown_offsets(access, group)
                for topic in denied_topics.get(group.group_id, ()):
                    group = replace(group, topics=(*group.topics, _denied_offsets(topic)))
            completed.append(group)
        groups = as_requested(
            (group.group_id for group in request.groups),
            (*completed, *rejected),
            lambda group: group.group_id,
        )
        return replace(response, groups=groups)

    if not kept and rejected:
        return Rejected(m.OffsetFetchResponse(groups=tuple(rejected)))
    return Screened(replace(request, groups=tuple(kept)), complete)


def _shown_offsets(access: Access, described: Any) -> Any:
    shown = tuple(topic for topic in described.topics if _may_describe(access, topic.name))
    return replace(described, topics=shown)


def _denied_offsets(topic: Any) -> Any:
    partitions = tuple(
        m.OffsetFetchResponse.OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=-1,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
        for index in topic.partition_indexes
    )
    return m.OffsetFetchResponse.OffsetFetchResponseTopics(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def _described_groups(asked: Asked) -> Screened | Rejected:
    """DESCRIBE of each group; its operations where they are requested."""
    request, access = asked.request, asked.access
    items = "groups" if isinstance(request, m.DescribeGroupsRequest) else "group_ids"
    screened = each(items, _DESCRIBE, _GROUP, _itself, denied_first=True)(asked)
    assert isinstance(screened, Screened)

    def complete(response: Any) -> Any:
        groups = [_described_group(asked, group) for group in response.groups]
        if request.include_authorized_operations:
            groups = [
                group
                if group.error_code != ErrorCode.NONE
                else replace(
                    group,
                    authorized_operations=access.operations(_GROUP, group.group_id, ON_GROUP),
                )
                for group in groups
            ]
        return screened.complete(replace(response, groups=tuple(groups)))

    return Screened(screened.request, complete)


def _described_group(asked: Asked, group: Any) -> Any:
    """A consumer group needs DESCRIBE of every topic that a member has, or is to have (KIP-848)."""
    if not isinstance(asked.request, m.ConsumerGroupDescribeRequest):
        return group
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if all(_may_describe(asked.access, name) for name in names):
        return group
    failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    text = "The group has described topic(s) that the client is not authorized to describe."
    return replace(group, error_code=failed, error_message=text, members=())


def _listed_groups(asked: Asked) -> Screened:
    """All groups with DESCRIBE of the cluster, else those with DESCRIBE of their own."""
    access = asked.access
    if access.may_on_cluster(_DESCRIBE):
        return Screened(asked.request)

    def complete(response: Any) -> Any:
        shown = (g for g in response.groups if access.may(_DESCRIBE, _GROUP, g.group_id))
        return replace(response, groups=tuple(shown))

    return Screened(asked.request, complete)


# -- transactions ------------------------------------------------------------------------


def _transactional_id(request: Any) -> str:
    return str(request.transactional_id)


def _producer_id(asked: Asked) -> Screened | Rejected:
    """WRITE of the transactional id; without one, IDEMPOTENT_WRITE or WRITE of any topic."""
    request, access = asked.request, asked.access
    if request.transactional_id is not None:
        allowed = access.may(_WRITE, _TRANSACTIONAL_ID, request.transactional_id) and (
            not request.enable2_pc
            or access.may(Operation.TWO_PHASE_COMMIT, _TRANSACTIONAL_ID, request.transactional_id)
        )
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        allowed = access.may_on_cluster(Operation.IDEMPOTENT_WRITE) or access.may_on_any(
            _WRITE, _TOPIC
        )
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if allowed:
        return Screened(request)
    return Rejected(error_response(request, error, version=asked.version))


def _added_partitions(asked: Asked) -> Screened | Rejected:
    """Of clients (to version 3) WRITE of the id and each topic: all partitions, or none.

    Internal topics are denied to everybody. Later versions come from brokers.
    """
    request, access = asked.request, asked.access
    if asked.version >= 4:
        return cluster(Operation.CLUSTER_ACTION)(asked)
    transactional_id = request.v3_and_below_transactional_id
    if not access.may(_WRITE, _TRANSACTIONAL_ID, transactional_id):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return Rejected(error_items(request, error, version=asked.version))
    denied = {
        topic.name
        for topic in request.v3_and_below_topics
        if topic.name in _INTERNAL or not access.may(_WRITE, _TOPIC, topic.name)
    }
    if not denied or access.authorizer is None:
        return Screened(request)
    kind = m.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    results = tuple(
        kind(
            name=topic.name,
            results_by_partition=tuple(
                m.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=_added(asked, topic.name, index, denied),
                )
                for index in topic.partitions
            ),
        )
        for topic in request.v3_and_below_topics
    )
    return Rejected(m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))


def _added(asked: Asked, name: str, index: int, denied: set[str]) -> ErrorCode:
    if name in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = asked.image.topics.named(name)
    if topic is None or asked.image.topics.partition(topic.id, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.OPERATION_NOT_ATTEMPTED


def _markers(asked: Asked) -> Screened | Rejected:
    """ALTER of the cluster, or CLUSTER_ACTION."""
    if asked.access.may_on_cluster(Operation.ALTER):
        return Screened(asked.request)
    return cluster(Operation.CLUSTER_ACTION)(asked)


def _described_transactions(asked: Asked) -> Screened | Rejected:
    """DESCRIBE of each id, and of the topics that are shown."""
    screened = each("transactional_ids", _DESCRIBE, _TRANSACTIONAL_ID, _itself)(asked)
    assert isinstance(screened, Screened)

    def complete(response: Any) -> Any:
        states = tuple(
            replace(
                state,
                topics=tuple(t for t in state.topics if _may_describe(asked.access, t.topic)),
            )
            for state in response.transaction_states
        )
        completed = screened.complete(replace(response, transaction_states=states))
        ordered = as_requested(
            asked.request.transactional_ids,
            completed.transaction_states,
            lambda state: state.transactional_id,
        )
        return replace(completed, transaction_states=ordered)

    return Screened(screened.request, complete)


def _listed_transactions(asked: Asked) -> Screened:
    """Those with DESCRIBE of their id."""

    def complete(response: Any) -> Any:
        shown = (
            state
            for state in response.transaction_states
            if asked.access.may(_DESCRIBE, _TRANSACTIONAL_ID, state.transactional_id)
        )
        return replace(response, transaction_states=tuple(shown))

    return Screened(asked.request, complete)


# -- the node and its configs ------------------------------------------------------------

_TOPIC_CONFIG, _LOGGER, _GROUP_CONFIG = 2, 8, 32


def described_configs(asked: Asked) -> Screened | Rejected:
    """DESCRIBE_CONFIGS of a topic or a group; of the cluster for everything else."""
    request, responses, left = asked.request, [], []
    for resource in request.resources:
        resource_type = {_TOPIC_CONFIG: _TOPIC, _GROUP_CONFIG: _GROUP}.get(resource.resource_type)
        if resource_type is None:
            allowed = asked.access.may_on_cluster(Operation.DESCRIBE_CONFIGS)
        else:
            allowed = asked.access.may(
                Operation.DESCRIBE_CONFIGS, resource_type, resource.resource_name
            )
        if allowed:
            left.append(resource)
        else:
            one, error = replace(request, resources=(resource,)), FAILED[resource_type or _CLUSTER]
            responses.append(error_items(one, error, version=asked.version))
    if not responses:
        return Screened(request)
    return Screened(
        replace(request, resources=tuple(left)),
        lambda response: reduce(joined, responses, response),
    )


def _described_scram_credentials(asked: Asked) -> Screened | Rejected:
    """DESCRIBE of the cluster.

    Errors:  NeverDecided with Kafka's bug, when all users are asked for.
    """
    authorizer = asked.access.authorizer
    if (
        authorizer is not None
        and authorizer.rules.denied_scram_description_has_no_response
        and asked.request.users is None
        and not asked.access.may_on_cluster(_DESCRIBE)
    ):
        raise NeverDecided
    return cluster(_DESCRIBE, says_what_is_needed=False)(asked)


def _altered_loggers(asked: Asked) -> Screened:
    """ALTER_CONFIGS of the cluster for the loggers of a broker, which it alters itself."""
    if asked.access.may_on_cluster(Operation.ALTER_CONFIGS):
        return Screened(asked.request)
    resources = asked.request.resources
    denied = [resource for resource in resources if resource.resource_type == _LOGGER]
    screened = without(asked, "resources", denied, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def complete(response: Any) -> Any:
        completed = screened.complete(response)
        responses = as_requested(map(_resource, resources), completed.responses, _resource)
        return replace(completed, responses=responses)

    return Screened(screened.request, complete)


def _resource(item: Any) -> tuple[int, str]:
    return item.resource_type, item.resource_name


SCREENS: Mapping[type[Message], Screen] = {
    m.ProduceRequest: _produced,
    m.ListOffsetsRequest: each("topics", _DESCRIBE, _TOPIC, by_name),
    m.OffsetForLeaderEpochRequest: _offsets_for_leader_epoch,
    m.DeleteRecordsRequest: each("topics", Operation.DELETE, _TOPIC, by_name),
    m.DescribeProducersRequest: _described_producers,
    m.MetadataRequest: _metadata,
    m.DescribeTopicPartitionsRequest: _described_topic_partitions,
    m.DescribeClusterRequest: _described_cluster,
    m.FindCoordinatorRequest: _coordinators,
    m.JoinGroupRequest: whole(_READ, _GROUP, _group),
    m.SyncGroupRequest: whole(_READ, _GROUP, _group),
    m.HeartbeatRequest: whole(_READ, _GROUP, _group),
    m.LeaveGroupRequest: whole(_READ, _GROUP, _group),
    m.ConsumerGroupHeartbeatRequest: in_order(whole(_READ, _GROUP, _group), _subscribed),
    m.OffsetCommitRequest: in_order(
        whole(_READ, _GROUP, _group), each("topics", _READ, _TOPIC, by_name)
    ),
    m.OffsetFetchRequest: _committed_offsets,
    m.OffsetDeleteRequest: in_order(
        whole(Operation.DELETE, _GROUP, _group), each("topics", _READ, _TOPIC, by_name)
    ),
    m.DescribeGroupsRequest: _described_groups,
    m.ConsumerGroupDescribeRequest: _described_groups,
    m.ListGroupsRequest: _listed_groups,
    m.DeleteGroupsRequest: each("groups_names", Operation.DELETE, _GROUP, _itself),
    m.InitProducerIdRequest: _producer_id,
    m.AddPartitionsToTxnRequest: _added_partitions,
    m.AddOffsetsToTxnRequest: in_order(
        whole(_WRITE, _TRANSACTIONAL_ID, _transactional_id), whole(_READ, _GROUP, _group)
    ),
    m.EndTxnRequest: whole(_WRITE, _TRANSACTIONAL_ID, _transactional_id),
    m.TxnOffsetCommitRequest: in_order(
        whole(_WRITE, _TRANSACTIONAL_ID, _transactional_id),
        whole(_READ, _GROUP, _group),
        each("topics", _READ, _TOPIC, by_name),
    ),
    m.WriteTxnMarkersRequest: _markers,
    m.DescribeTransactionsRequest: _described_transactions,
    m.ListTransactionsRequest: _listed_transactions,
    m.DescribeConfigsRequest: described_configs,
    m.IncrementalAlterConfigsRequest: _altered_loggers,
    m.ListConfigResourcesRequest: cluster(Operation.DESCRIBE_CONFIGS),
    m.DescribeClientQuotasRequest: cluster(Operation.DESCRIBE_CONFIGS, says_what_is_needed=False),
    m.DescribeUserScramCredentialsRequest: _described_scram_credentials,
    m.DescribeLogDirsRequest: cluster(_DESCRIBE),
    m.AlterReplicaLogDirsRequest: cluster(Operation.ALTER),
    m.DescribeAclsRequest: of_acls(cluster(_DESCRIBE)),
    m.CreateAclsRequest: of_acls(open_to_all),
    m.DeleteAclsRequest: of_acls(open_to_all),
    m.ApiVersionsRequest: open_to_all,
}
"""The screen of each API that a broker responds to itself, but Fetch, which has sessions."""
