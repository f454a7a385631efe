"""Examples of the rules in `exchange/users.py`."""

from __future__ import annotations

import json
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.exchange.users import (
    a_published_acl_is_enforced,
    an_ended_session_sends_nothing,
    the_trace_has_no_secret,
    who_lacks_a_right_gets_nothing,
)
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.handwritten.log import cluster
from tests.verify.handwritten.run import RunBuilder

_CONFIG = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:admin"}
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_ALLOW, _DENY = 3, 2


def _acl(
    *,
    number: int = 1,
    permission: int = _ALLOW,
    name: str = "orders",
    pattern: int = 3,
    operation: int = 4,  # WRITE
) -> r.AccessControlEntryRecord:
    return r.AccessControlEntryRecord(
        id=UUID(int=number),
        resource_type=2,
        resource_name=name,
        pattern_type=pattern,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=permission,
    )


def _published(*acls: r.AccessControlEntryRecord) -> RunBuilder:
    """Broker 1 has published these ACLs."""
    log = cluster()
    for acl in acls:
        log = log.op(acl)
    return RunBuilder(log, config=_CONFIG).publish(1)


def _produce(run: RunBuilder, error: int, user: str = "User:alice", **values: object) -> RunBuilder:
    partition = {"index": 0, "errorCode": int(error)}
    response = {"responses": [{"name": "orders", "partitionResponses": [partition]}]}
    of_user = {"principal": user, "host": "127.0.0.1", "dst": 1}
    return run.rpc("Produce", -2, response=json.dumps(response), **{**of_user, **values})


@breaks(who_lacks_a_right_gets_nothing)
def u1_bad() -> RunBuilder:
    """User:alice has no WRITE on orders, and her Produce to it succeeds."""
    return _produce(_published(), ErrorCode.NONE)


@breaks(who_lacks_a_right_gets_nothing)
def u1_denied() -> RunBuilder:
    """A prefix allows User:alice to write to orders, another ACL denies it, and her Produce
    succeeds."""
    acls = _acl(name="ord", pattern=4), _acl(number=2, permission=_DENY)
    return _produce(_published(*acls), ErrorCode.NONE)


@breaks(who_lacks_a_right_gets_nothing)
def u1_shown() -> RunBuilder:
    """User:alice has no right on orders, and Metadata shows it to her."""
    response = {"topics": [{"errorCode": 0, "name": "orders", "partitions": []}]}
    of_user = {"principal": "User:alice", "host": "127.0.0.1", "dst": 1}
    return _published().rpc("Metadata", -2, response=json.dumps(response), **of_user)


@keeps(who_lacks_a_right_gets_nothing)
def u1_near() -> RunBuilder:
    """Her Produce gets TOPIC_AUTHORIZATION_FAILED; that of the super user succeeds."""
    run = _produce(_published(), _DENIED)
    return _produce(run, ErrorCode.NONE, "User:admin")


@breaks(a_published_acl_is_enforced)
def u2_bad() -> RunBuilder:
    """The node has published an ACL by which User:alice may write to orders, and her Produce gets
    TOPIC_AUTHORIZATION_FAILED."""
    return _produce(_published(_acl()), _DENIED)


@keeps(a_published_acl_is_enforced)
def u2_near() -> RunBuilder:
    """Her Produce before the node published the ACL is denied, the next one succeeds."""
    log = cluster().op(_acl())
    run = RunBuilder(log, config=_CONFIG).publish(1, log.offset - 2)
    return _produce(_produce(run, _DENIED).publish(1), ErrorCode.NONE)


def _asked(
    api: str, request: object, response: object, *acls: r.AccessControlEntryRecord
) -> RunBuilder:
    return _of_alice(_published(*acls), api, request, response)


def _of_alice(run: RunBuilder, api: str, request: object, response: object) -> RunBuilder:
    of_user = {"principal": "User:alice", "host": "127.0.0.1", "dst": 1}
    bodies = {"request": json.dumps(request), "response": json.dumps(response)}
    return run.rpc(api, -2, **bodies, **of_user)


@breaks(who_lacks_a_right_gets_nothing)
def u1_committed() -> RunBuilder:
    """User:alice may read orders and not the group, and her OffsetCommit succeeds."""
    partition = {"partitionIndex": 0, "errorCode": 0}
    response = {"topics": [{"name": "orders", "partitions": [partition]}]}
    return _asked("OffsetCommit", {"groupId": "billing"}, response, _acl(operation=3))


@breaks(who_lacks_a_right_gets_nothing)
def u1_described() -> RunBuilder:
    """User:alice has no right on the group billing, and DescribeGroups shows it to her."""
    return _asked("DescribeGroups", {}, {"groups": [{"groupId": "billing", "errorCode": 0}]})


@breaks(who_lacks_a_right_gets_nothing)
def u1_found() -> RunBuilder:
    """User:alice has no right on a transactional id, and FindCoordinator answers her."""
    found = {"coordinators": [{"key": "till", "errorCode": 0, "nodeId": 1}]}
    return _asked("FindCoordinator", {"keyType": 1}, found)


@breaks(who_lacks_a_right_gets_nothing)
def u1_ended() -> RunBuilder:
    """User:alice has no right on a transactional id, and ends its transaction."""
    return _asked("EndTxn", {"transactionalId": "till"}, {"errorCode": 0})


@breaks(who_lacks_a_right_gets_nothing)
def u1_configured() -> RunBuilder:
    """User:alice may write to orders, and sets its configs."""
    response = {"responses": [{"errorCode": 0, "resourceType": 2, "resourceName": "orders"}]}
    return _asked("IncrementalAlterConfigs", {}, response, _acl())


@breaks(a_published_acl_is_enforced)
def u2_implied() -> RunBuilder:
    """User:alice may write to orders, and so describe it; her ListOffsets is denied."""
    partition = {"partitionIndex": 0, "errorCode": int(_DENIED)}
    response = {"topics": [{"name": "orders", "partitions": [partition]}]}
    return _asked("ListOffsets", {}, response, _acl())


@keeps(who_lacks_a_right_gets_nothing)
def u1_near_by_name() -> RunBuilder:
    """User:alice may not alter the cluster, and ElectLeaders tells her so."""
    return _asked("ElectLeaders", {}, {"errorCode": 31, "replicaElectionResults": []})


@breaks(an_ended_session_sends_nothing)
def u3_bad() -> RunBuilder:
    """The session of User:alice has ended two seconds before a request of it is taken."""
    return _produce(_published(_acl()), ErrorCode.NONE, sent_ms=12_000, session_ends_ms=10_000)


@keeps(an_ended_session_sends_nothing)
def u3_near() -> RunBuilder:
    """A request is taken half a second later."""
    run = _produce(_published(_acl()), ErrorCode.NONE, sent_ms=10_500, session_ends_ms=10_000)
    return _produce(run, ErrorCode.NONE, sent_ms=9_000, session_ends_ms=10_000)


def _token(hmac: str) -> RunBuilder:
    response = {"errorCode": 0, "tokenId": "t", "hmac": hmac}
    of_user = {"principal": "User:alice", "host": "127.0.0.1", "dst": 1}
    response_text = json.dumps(response)
    return _published().rpc("CreateDelegationToken", -2, response=response_text, **of_user)


@breaks(the_trace_has_no_secret)
def u4_bad() -> RunBuilder:
    """The response to CreateDelegationToken stands in the trace with its HMAC."""
    return _token("c2VjcmV0")


@keeps(the_trace_has_no_secret)
def u4_near() -> RunBuilder:
    """It stands there with an empty one."""
    return _token("")


@exempts(who_lacks_a_right_gets_nothing, a_published_acl_is_enforced)
def u1_near_changed() -> RunBuilder:
    """User:alice deletes orders through another broker than the one that publishes meanwhile that
    she may."""
    run = _published()
    run.log.op(_acl(operation=6)).op(r.NoOpRecord())
    run.publish(2, run.log.offset - 3).publish(1, run.log.offset - 3).publish(2)
    response = {"responses": [{"name": "orders", "errorCode": 0}]}
    return _of_alice(run, "DeleteTopics", {}, response)
