"""What a broker takes out of requests before its handlers see them, beside what recordings show."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.actors.nodes.authorization import screened
from minicluster.broker.authorization import SCREENS
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.security import Acls
from minicluster.metadata.image.tables import Table
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from minicluster.security.authorizer import AuthorizerSettings, NeverDecided, StandardAuthorizer
from minicluster.security.principals import USER, KafkaPrincipal, Requester
from minicluster.security.screening import CLOSES, Access, Asked, Rejected, Screened
from tests.security.recorded import entry

MAY_WRITE = {
    "type": "TOPIC", "name": "orders", "pattern": "LITERAL", "principal": "User:alice",
    "host": "*", "operation": "WRITE", "permission": "ALLOW",
}  # fmt: skip


def screen(request: Any, *acls: dict[str, str], rules: Rules = Rules.KAFKA_4_3) -> Any:
    """A request of alice's as the broker's screen leaves it."""
    table: Acls = Table("acls")
    for number, acl in enumerate(acls):
        table = table.put(entry(acl, number).id, entry(acl, number))
    authorizer = StandardAuthorizer(AuthorizerSettings(), rules)
    authorizer.publish(table)
    access = Access(authorizer, Requester(KafkaPrincipal(USER, "alice")))
    by_name = 12  # of Produce, which has ids from version 13 on
    version = min(type(request).latest_version, by_name)
    return screened(SCREENS, Asked(access, request, version, MetadataImage.EMPTY))


def produce(*topics: str, acks: int) -> m.ProduceRequest:
    kind, data = m.ProduceRequest.TopicProduceData, m.ProduceRequest.PartitionProduceData
    return m.ProduceRequest(
        acks=acks, topic_data=tuple(kind(name=name, partition_data=(data(),)) for name in topics)
    )


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, Rules.KAFKA_4_3.as_shipped()])
def test_all_scram_users_are_not_described_without_the_right(rules: Rules) -> None:
    """As shipped there is no response at all, over an error that cannot be made."""
    everybody = m.DescribeUserScramCredentialsRequest(users=None)
    if rules.denied_scram_description_has_no_response:
        with pytest.raises(NeverDecided):
            screen(everybody, rules=rules)
    else:
        denied = screen(everybody, rules=rules).response
        assert denied.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_denied_record_without_acknowledgement_ends_the_connection() -> None:
    """What is allowed of the request is written; there is no other place for the error."""
    allowed = screen(produce("orders", acks=0), MAY_WRITE)
    assert isinstance(allowed, Screened)
    assert allowed.complete(None) is None

    partly = screen(produce("orders", "secrets", acks=0), MAY_WRITE)
    assert [topic.name for topic in partly.request.topic_data] == ["orders"]
    assert partly.complete(None) is CLOSES

    told = screen(produce("orders", "secrets", acks=1), MAY_WRITE)
    (failed,) = told.complete(m.ProduceResponse()).responses
    assert failed.name == "secrets"


@pytest.mark.parametrize(
    "request_",
    [
        m.DescribeAclsRequest(resource_type_filter=0, operation=1, permission_type=1),
        m.CreateAclsRequest(creations=(m.CreateAclsRequest.AclCreation(),)),
        m.DeleteAclsRequest(filters=(m.DeleteAclsRequest.DeleteAclsFilter(),)),
    ],
    ids=lambda request: type(request).__name__,
)
def test_an_acl_with_an_unknown_field_cannot_be_read(request_: Any) -> None:
    assert screen(request_) == Rejected(CLOSES)
