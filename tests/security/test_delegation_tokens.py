"""The life of a delegation token: made, shown, renewed, and gone."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.broker.api_state import ApiState, KafkaApisConfig
from minicluster.broker.requests.delegation_tokens import respond_to_token_request
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.security import AccessControlEntry
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from minicluster.rules import Rules
from minicluster.security.acls import Operation, PatternType, Permission, ResourceType
from minicluster.security.authorizer import AuthorizerSettings, StandardAuthorizer
from minicluster.security.delegation_tokens import SECRET_KEY
from minicluster.security.principals import ANONYMOUS, USER, KafkaPrincipal, Requester
from minicluster.security.screening import Access
from minicluster.values import replace
from tests.controller.kit import Cluster
from tests.security.recorded import entry

SECURED = {SECRET_KEY: "the nodes' own"}
Owner = m.DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
Renewer = m.CreateDelegationTokenRequest.CreatableRenewers


def access(name: str, **fields: Any) -> Access:
    requester = Requester(KafkaPrincipal(USER, name), security_protocol="SASL_SSL")
    return Access(_no_acls(), replace(requester, **fields))


def _no_acls(*entries: AccessControlEntry) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(AuthorizerSettings(), Rules.KAFKA_4_3)
    authorizer.publish(_image(entries).acls)
    return authorizer


def _image(entries: tuple[AccessControlEntry, ...]) -> MetadataImage:
    image = MetadataImage()
    for one in entries:
        image = replace(image, acls=image.acls.put(one.id, one))
    return image


def secured() -> Cluster:
    settings = {"token_expiry_ms": 6_000, "token_check_interval_ms": 5_000}
    return Cluster(settings={"static_config": SECURED, **settings})


def create(cluster: Cluster, name: str = "alice", **fields: Any) -> Any:
    request = m.CreateDelegationTokenRequest(**fields)
    return cluster.request(request, access=access(name))


def describe(cluster: Cluster, of: Access, *owners: str) -> Any:
    state = ApiState(KafkaApisConfig(broker_id=1, cluster_id="test", static=SECURED))
    state.image = cluster.machine.committed_image
    named = tuple(Owner(principal_type=USER, principal_name=name) for name in owners)
    request = m.DescribeDelegationTokenRequest(owners=named or None)
    return respond_to_token_request(state, request, 3, of)


def renew(cluster: Cluster, token: Any, name: str, period_ms: int = -1) -> Any:
    request = m.RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms)
    return cluster.request(request, access=access(name))


def expire(cluster: Cluster, token: Any, name: str, period_ms: int = -1) -> Any:
    request = m.ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=period_ms)
    return cluster.request(request, access=access(name))


def test_a_token_is_renewed_up_to_its_maximum_and_swept_when_it_has_expired() -> None:
    """Until the sweep it is still listed."""
    cluster = secured()
    token = create(cluster, max_lifetime_ms=13_000)
    assert (token.expiry_timestamp_ms, token.max_timestamp_ms) == (6_000, 13_000)
    assert [shown.hmac for shown in describe(cluster, access("alice")).tokens] == [token.hmac]

    cluster.run(until_ms=5_500)
    assert renew(cluster, token, "alice", 3_000).expiry_timestamp_ms == 8_500
    cluster.run(until_ms=8_500)
    assert renew(cluster, token, "alice").expiry_timestamp_ms == 13_000  # no later

    cluster.run(until_ms=14_900)
    assert describe(cluster, access("alice")).tokens
    removed = cluster.records_of(lambda: cluster.run(until_ms=15_000))
    assert RemoveDelegationTokenRecord(token_id=token.token_id) in removed
    assert not describe(cluster, access("alice")).tokens
    assert renew(cluster, token, "alice").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_the_secret_is_in_no_record() -> None:
    cluster = secured()
    (record,) = cluster.records_of(lambda: create(cluster))
    assert isinstance(record, DelegationTokenRecord)
    assert not {spec.name for spec in record.schema if spec.type_ == "bytes"}


def test_a_token_that_has_expired_can_only_be_removed() -> None:
    """Between its end and the sweep."""
    cluster = secured()
    token = create(cluster, max_lifetime_ms=1_000)
    cluster.now_ms += 1_001
    assert renew(cluster, token, "alice").error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(cluster, token, "alice", 5).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(cluster, token, "alice").error_code == ErrorCode.NONE
    assert not describe(cluster, access("alice")).tokens


def test_renewers_may_renew_and_nobody_else() -> None:
    cluster = secured()
    token = create(cluster, renewers=(Renewer(principal_type=USER, principal_name="bob"),))
    assert renew(cluster, token, "bob").error_code == ErrorCode.NONE
    for act in (renew, expire):
        error = act(cluster, token, "carol").error_code
        assert error == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    no_user = create(cluster, renewers=(Renewer(principal_type="Group", principal_name="x"),))
    assert no_user.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_token_for_somebody_else_needs_a_right() -> None:
    """CREATE_TOKENS on him to make it, DESCRIBE_TOKENS on him to see it (KIP-373)."""
    cluster = secured()
    for_bob = {"owner_principal_type": USER, "owner_principal_name": "bob"}
    denied = create(cluster, **for_bob)
    assert denied.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED

    rights = _no_acls(_acl("CREATE_TOKENS", "dan", 1), _acl("DESCRIBE_TOKENS", "eve", 2))
    dan, eve = (replace(access(name), authorizer=rights) for name in ("dan", "eve"))
    made = cluster.request(m.CreateDelegationTokenRequest(**for_bob), access=dan)
    assert made.principal_name == "bob"
    assert made.token_requester_principal_name == "dan"
    seen = {of.requester.principal.name: bool(describe(cluster, of).tokens) for of in (dan, eve)}
    assert seen == {"dan": False, "eve": True}
    assert describe(cluster, access("bob"), "bob").tokens
    assert not describe(cluster, access("bob"), "alice").tokens


def _acl(operation: str, name: str, number: int) -> AccessControlEntry:
    acl = {
        "type": ResourceType.USER.name,
        "name": "User:bob",
        "pattern": PatternType.LITERAL.name,
        "principal": f"User:{name}",
        "host": "*",
        "operation": Operation[operation].name,
        "permission": Permission.ALLOW.name,
    }
    return entry(acl, number)


@pytest.mark.parametrize(
    "fields",
    [
        {"security_protocol": "PLAINTEXT"},
        {"security_protocol": "SSL", "principal": ANONYMOUS},
        {"is_token_authenticated": True},
    ],
    ids=["plaintext", "one-way TLS", "a token"],
)
def test_who_may_not_ask_about_tokens(fields: dict[str, Any]) -> None:
    """Nobody whose connection others could make, and no token: it would have no end."""
    cluster = secured()
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    sender = access("alice", **fields)
    creation = m.CreateDelegationTokenRequest()
    assert cluster.request(creation, access=sender).error_code == not_allowed
    assert describe(cluster, sender).error_code == not_allowed


def test_without_a_secret_key_there_are_no_tokens() -> None:
    cluster = Cluster()
    for response in (create(cluster), renew(cluster, m.CreateDelegationTokenResponse(), "alice")):
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_a_token_ends_by_the_time_of_day() -> None:
    """A cluster's clock begins at 0, and its clients' at 1970."""
    epoch_ms = 1_700_000_000_000
    settings = {"token_expiry_ms": 6_000, "token_check_interval_ms": 5_000, "epoch_ms": epoch_ms}
    cluster = Cluster(settings={"static_config": SECURED, **settings})
    made = create(cluster)
    assert made.expiry_timestamp_ms == made.issue_timestamp_ms + 6_000 > epoch_ms
    [described] = describe(cluster, access("alice")).tokens
    assert described.expiry_timestamp == made.expiry_timestamp_ms
    cluster.run(until_ms=5_500)
    assert describe(cluster, access("alice")).tokens
    cluster.run(until_ms=10_500)
    assert not describe(cluster, access("alice")).tokens
