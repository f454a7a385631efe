"""What users asked for, beside the ACLs that the node had published when it handled the request.

========================  ========================================================================
takes                     ``rpc`` rows of requests with a principal; ``publish`` rows; the ACLs and
                          the names of topics in the committed log
keeps                     the ACLs after each change of them; by node the offsets that it published
yields                    ``AskedResource``, ``SessionUse``, ``TracedSecret``
========================  ========================================================================

Rights are decided a second time here, by the words of KIP-11 and KIP-290, and from the log alone:
the node's own authorizer is what is judged. A request that a broker forwards is decided by a
controller, somewhat later: it is judged where all nodes agree for as long as it took.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minicluster.protocol import records as r
from minicluster.protocol.error_codes import ErrorCode
from minicluster.values import dataclass
from minicluster.verify.evidence.operations import operations_of
from minicluster.verify.exchange.exchange import body, each
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

TOPIC, GROUP, CLUSTER = "topic", "group", "cluster"
TRANSACTIONAL_ID = "transactional id"
_TYPES = {TOPIC: 2, GROUP: 3, CLUSTER: 4, TRANSACTIONAL_ID: 5}
_CLUSTER_NAME = "kafka-cluster"
_OPERATIONS = {
    "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8,
    "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11,
}  # fmt: skip
_LITERAL, _PREFIXED = 3, 4
_DENY, _ALLOW = 2, 3
_IMPLIED_BY = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}
_EVERYBODY, _EVERY = "User:*", "*"
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
_FORWARDED = {*_ON_THE_CLUSTER, *_ABOUT_TOPICS, *_ALTER_CONFIGS} - _BY_BROKERS
_ALSO_ON_CLUSTER = ("CreateTopics", "DeleteTopics")
_SECRETS = ("hmac", "saltedPassword", "authBytes", "requestData", "responseData")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedResource:
    """One resource that a user's request is about, and what the response said of it.

    Shapes:  right: the operation that it needs, such as WRITE; is_allowed: by the ACLs that its
             node had published; None where nodes differed meanwhile. is_denied: the response
             says that the right is missing; is_given: it has no error for the resource.
    """

    principal: str
    api: str
    right: str
    kind: str
    name: str
    node: int
    is_allowed: bool | None
    is_denied: bool
    is_given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUse:
    """A request on a connection whose session has an end.

    Units:   sent_ms, ends_ms: of the cluster's clock.
    """

    principal: str
    api: str
    node: int
    sent_ms: int
    ends_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedSecret:
    """A field of the trace that would hold something by which one logs in."""

    api: str
    field: str
    is_empty: bool


Acl = r.AccessControlEntryRecord


class Acls:
    """The ACLs of the committed log at any offset, and what each node has published of them."""

    def __init__(self, run: TracedRun) -> None:
        config = run.header.config or {}
        named = str(config.get("super.users", ""))
        self._super_users = frozenset(filter(None, (name.strip() for name in named.split(";"))))
        everyone = config.get("allow.everyone.if.no.acl.found", "false")
        self._everyone = str(everyone).lower() == "true"
        self.is_on = bool(config.get("authorizer.class.name"))
        self.names: dict[str, str] = {}  # of topics, by id
        self._offsets: list[int] = []
        self._states: list[tuple[Acl, ...]] = []
        self._published: dict[int, tuple[list[int], list[int]]] = {}  # by node: events, offsets
        if self.is_on:
            self._fold(run)
            for row in run.rows("publish"):
                events, offsets = self._published.setdefault(row["node"], ([], []))
                events.append(row["seq"])
                offsets.append(row["offset"])

    def _fold(self, run: TracedRun) -> None:
        evidence, acls = run.evidence, dict[Any, Acl]()
        start = evidence.start
        for placed in () if start is None else start.records:
            self._apply(acls, placed.record)
        self._keep(-1 if start is None else start.end_offset - 1, acls)
        for operation in operations_of(evidence.committed if evidence.foldable else ()):
            changes = [self._apply(acls, entry.record) for entry in operation.entries]
            if any(changes):
                self._keep(operation.end, acls)

    def _apply(self, acls: dict[Any, Acl], record: Any) -> bool:
        if isinstance(record, r.AccessControlEntryRecord):
            acls[record.id] = record
        elif isinstance(record, r.RemoveAccessControlEntryRecord):
            acls.pop(record.id, None)
        elif isinstance(record, r.TopicRecord):
            self.names[str(record.topic_id)] = record.name
            return False
        else:
            return False
        return True

    def _keep(self, offset: int, acls: Mapping[Any, Acl]) -> None:
        self._offsets.append(offset)
        self._states.append(tuple(acls.values()))

    def at(self, offset: int) -> tuple[Acl, ...] | None:
        """Those of the image at an offset; None before the first."""
        place = bisect_right(self._offsets, offset)
        return self._states[place - 1] if place else None

    def published(self, node: int, since: int, until: int | None = None) -> Iterator[int]:
        """The offsets that a node had published at an event, and those up to another one."""
        events, offsets = self._published.get(node, ([], []))
        first = bisect_right(events, since)
        last = first if until is None else bisect_right(events, until)
        yield from offsets[max(0, first - 1) : last]

    @property
    def nodes(self) -> Iterable[int]:
        """Those that have published an image."""
        return self._published

    def allows(
        self, acls: Iterable[Acl], principal: str, host: str, right: str, kind: str, name: str
    ) -> bool:
        """Whether somebody has a right, by these ACLs (KIP-11, KIP-290)."""
        if principal in self._super_users:
            return True
        of_resource = [acl for acl in acls if _is_about(acl, kind, name)]
        mine = [
            acl
            for acl in of_resource
            if acl.principal in (principal, _EVERYBODY) and acl.host in (host, _EVERY)
        ]
        asked = {_OPERATIONS[right], _OPERATIONS["ALL"]}
        if any(acl.permission_type == _DENY and acl.operation in asked for acl in mine):
            return False
        asked |= {_OPERATIONS[other] for other in _IMPLIED_BY.get(right, ())}
        if any(acl.permission_type == _ALLOW and acl.operation in asked for acl in mine):
            return True
        return not of_resource and self._everyone


def _is_about(acl: Acl, kind: str, name: str) -> bool:
    if acl.resource_type != _TYPES[kind]:
        return False
    if acl.pattern_type == _PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.pattern_type == _LITERAL and acl.resource_name in (name, _EVERY)


def acls(run: TracedRun) -> Acls:
    """Context: the ACLs of the run."""
    return Acls(run)


@history(AskedResource, reads=("rpc", "publish"))
def asked_resources(run: TracedRun, judge: Judge) -> None:
    """Each resource of each answered request of a user."""
    known = run.context(acls)
    if not known.is_on:
        return
    for row in run.rows("rpc"):
        principal = row.get("principal")
        if principal is None or row["resp_seq"] is None or row["answer"] is not None:
            continue
        for right, kind, name, errors in _asked(known, row):
            if not name or not errors:
                continue
            denied_by = _DENIED_BY[kind]
            step = AskedResource(
                principal=principal,
                api=row["api"],
                right=right,
                kind=kind,
                name=name,
                node=row["dst"],
                is_allowed=_is_allowed(known, row, right, kind, name),
                is_denied=denied_by in errors,
                is_given=ErrorCode.NONE in errors,
            )
            judge.take(step, event=row["resp_seq"], request=row["id"])


def _asked(known: Acls, row: Row) -> Iterator[tuple[str, str, str | None, set[int]]]:
    """The resources of a request, each with its right and the errors that it got.

    A resource without a name, or without an error code of its own, decides nothing.
    """
    api, request, response = row["api"], body(row["request"]), body(row["response"])
    if api in _ON_TOPICS:
        right, topics = _ON_TOPICS[api]
        for topic in each(response, topics):
            name = topic.get("name") or topic.get("topic")
            name = name or known.names.get(_uuid(topic.get("topicId")))
            if name and not name.startswith(_EVERY):  # of which no ACL can tell
                yield right, TOPIC, name, _errors(topic)
    if api in _ON_GROUPS:
        right, groups = _ON_GROUPS[api]
        for group in each(response, groups):
            yield right, GROUP, group.get("groupId"), _errors(group)
    if api in _ON_CONFIGS:
        right, resources = _ON_CONFIGS[api]
        for resource in each(response, resources):
            kind = _CONFIGS_OF.get(resource.get("resourceType", 0))
            if kind is not None:
                name = _CLUSTER_NAME if kind == CLUSTER else resource.get("resourceName")
                yield right, kind, name, _errors(resource)
    if api == "FindCoordinator" and request.get("keyType", 0) in _COORDINATORS_OF:
        kind = _COORDINATORS_OF[request.get("keyType", 0)]
        one = {"key": request.get("key"), "errorCode": response.get("errorCode", 0)}
        for coordinator in each(response, "coordinators") or (one,):
            yield "DESCRIBE", kind, coordinator.get("key"), _errors(coordinator)
    if api in _ON_THE_GROUP:
        yield _ON_THE_GROUP[api], GROUP, request.get("groupId"), _errors(response)
    if api in _ON_THE_TRANSACTIONAL_ID:
        named = request.get(_ON_THE_TRANSACTIONAL_ID[api])
        yield "WRITE", TRANSACTIONAL_ID, named, _errors(response)
    if api in _ON_THE_CLUSTER:
        yield _ON_THE_CLUSTER[api], CLUSTER, _CLUSTER_NAME, _errors(response)


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


def _uuid(text: Any) -> str:
    from minicluster.protocol.uuids import parse_uuid

    return "" if not text else str(parse_uuid(text))


def _is_allowed(known: Acls, row: Row, right: str, kind: str, name: str) -> bool | None:
    """What the published ACLs say; None where they differ while the request was under way."""
    is_forwarded = row["api"] in _FORWARDED
    nodes = known.nodes if is_forwarded else (row["dst"],)
    until = row["resp_seq"] if is_forwarded else None
    said = set()
    for node in nodes:
        for offset in known.published(node, row["handle_seq"], until):
            state = known.at(offset)
            if state is None:
                return None
            who = row["principal"], row.get("host") or ""
            allowed = known.allows(state, *who, right, kind, name)
            if not allowed and row["api"] in _ALSO_ON_CLUSTER:
                allowed = known.allows(state, *who, right, CLUSTER, _CLUSTER_NAME)
            said.add(allowed)
    return said.pop() if len(said) == 1 else None


@history(SessionUse, reads=("rpc",))
def session_uses(run: TracedRun, judge: Judge) -> None:
    """Each request on a session that has an end."""
    for row in run.rows("rpc"):
        ends_ms = row.get("session_ends_ms")
        if ends_ms is not None:
            step = SessionUse(
                principal=row["principal"],
                api=row["api"],
                node=row["dst"],
                sent_ms=row["sent_ms"],
                ends_ms=ends_ms,
            )
            judge.take(step, event=row["send_seq"], request=row["id"])


@history(TracedSecret, reads=("rpc",))
def traced_secrets(run: TracedRun, judge: Judge) -> None:
    """Each field with a secret, in the requests and responses of the trace."""
    for row in run.rows("rpc"):
        for text in (row["request"], row["response"]):
            if text and any(f'"{name}"' in text for name in _SECRETS):
                for name, value in _secrets(json.loads(text)):
                    step = TracedSecret(api=row["api"], field=name, is_empty=not value)
                    judge.take(step, event=row["send_seq"], request=row["id"])


def _secrets(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _secrets(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in _SECRETS:
                yield name, item
            else:
                yield from _secrets(item)
