"""ACLs are created, deleted and listed as Kafka's AclControlManager and StandardAuthorizer do."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from minicluster.controller.operations.create_acls import create_acls, screen_create_acls
from minicluster.controller.operations.delete_acls import delete_acls
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import AccessControlEntryRecord
from minicluster.rules import Rules
from minicluster.security.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from minicluster.security.authorizer import AUTHORIZER, AuthorizerSettings, StandardAuthorizer
from tests.controller.applying import apply_record
from tests.controller.kit import Cluster
from tests.security.recorded import lines, seeds

Filter = m.DeleteAclsRequest.DeleteAclsFilter
Creation = m.CreateAclsRequest.AclCreation


@pytest.mark.parametrize("path", seeds("acl-operations"), ids=lambda path: path.name[:-9])
def test_kafkas_acl_operations(path: Path) -> None:
    """Each operation has Kafka's results and records, and leaves as many ACLs."""
    player = Player()
    for step in lines(path):
        if "op" in step and "refused_when_built" not in step:
            player.play(step, f"{path.name}, {step['i']}: {str(step)[:400]}")


class Player:
    """A controller's state, to which the records of its own decisions are applied at once."""

    def __init__(self) -> None:
        self.state = _secured().machine.state
        self._ids: dict[UUID, str] = {}

    def play(self, step: dict[str, Any], place: str) -> None:
        getattr(self, f"_{step['op']}")(step, place)
        assert len(self.state.image.acls) == step["acls"], place

    def _create_acls(self, step: dict[str, Any], place: str) -> None:
        creations = tuple(_creation(acl) for acl in step["request"])
        decision = create_acls(self.state, m.CreateAclsRequest(creations=creations), self._new_id)
        errors = [bool(result.error_code) for result in decision.response.results]
        assert errors == ["error" in result for result in step["response"]], place
        messages = [result.error_message or None for result in decision.response.results]
        assert messages == [result.get("error_message") for result in step["response"]], place
        self._apply(decision, step, place)

    def _delete_acls(self, step: dict[str, Any], place: str) -> None:
        filters = tuple(_filter(requested) for requested in step["request"])
        decision = delete_acls(self.state, m.DeleteAclsRequest(filters=filters))
        for ours, kafkas in zip(decision.response.filter_results, step["response"], strict=True):
            assert bool(ours.error_code) == ("error" in kafkas), place
            deleted = sorted(map(_described, ours.matching_acls))
            assert deleted == sorted(map(_recorded, kafkas.get("deleted", ()))), place
        self._apply(decision, step, place)

    def _describe_acls(self, step: dict[str, Any], place: str) -> None:
        authorizer = StandardAuthorizer(AuthorizerSettings(), Rules.KAFKA_4_3)
        authorizer.publish(self.state.image.acls)
        requested = step["request"]
        listed = authorizer.listed(
            AclFilter(
                resource_type=ResourceType[requested["type"]],
                resource_name=requested["name"],
                pattern_type=PatternType[requested["pattern"]],
                principal=requested["principal"],
                host=requested["host"],
                operation=Operation[requested["operation"]],
                permission=Permission[requested["permission"]],
            )
        )
        assert [_of_acl(acl) for acl in listed] == list(map(_recorded, step["response"])), place

    def _apply(self, decision: Any, step: dict[str, Any], place: str) -> None:
        assert decision.atomic, place
        ours = [self._ids[record.record.id] for record in decision.records]
        kafkas = [record["id"] for record in step["records"]]
        if not isinstance(decision.records[0].record if ours else None, AccessControlEntryRecord):
            ours, kafkas = sorted(ours), sorted(kafkas)
        assert ours == kafkas, place
        for record in decision.records:
            apply_record(self.state, record, self.state.offset + 1)

    def _new_id(self) -> UUID:
        new = UUID(int=len(self._ids) + 1)
        self._ids[new] = f"<acl-{len(self._ids) + 1}>"
        return new


def test_without_an_authorizer_there_are_no_acls() -> None:
    """Whoever asks."""
    for request in (
        m.CreateAclsRequest(creations=(Creation(),)),
        m.DeleteAclsRequest(filters=(Filter(),)),
    ):
        response = Cluster().request(request, 3)
        results = getattr(response, "results", None) or response.filter_results
        assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED]


def test_any_in_an_acl_fails_it_alone_unless_as_shipped() -> None:
    """As shipped, all ACLs of the request fail with UNKNOWN_SERVER_ERROR."""
    good = _creation(
        {"type": "TOPIC", "name": "a", "pattern": "LITERAL", "principal": "User:a", "host": "*"}
        | {"operation": "READ", "permission": "ALLOW"}
    )
    request = m.CreateAclsRequest(
        creations=(good, Creation(**{**_fields(good), "operation": Operation.ANY}))
    )
    response = _secured().request(request, 3)
    assert [result.error_code for result in response.results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    shipped = _secured(Rules.KAFKA_4_3.as_shipped()).request(request, 3)
    assert {result.error_code for result in shipped.results} == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_the_cluster_has_one_name() -> None:
    """Rejected before the ACLs are looked at, each in its place."""
    cluster_acl = {"type": "CLUSTER", "pattern": "LITERAL", "principal": "User:a", "host": "*"}
    cluster_acl |= {"operation": "ALTER", "permission": "ALLOW"}
    names = ("*", "kafka-cluster", "")
    request = m.CreateAclsRequest(
        creations=tuple(_creation(cluster_acl | {"name": name}) for name in names)
    )
    screened = screen_create_acls(_secured().machine.state, request)
    assert [creation.resource_name for creation in screened.request.creations] == ["kafka-cluster"]
    response = _secured().request(request, 3)
    assert [result.error_message or None for result in response.results] == [
        "The only valid name for the CLUSTER resource is kafka-cluster",
        None,
        "The only valid name for the CLUSTER resource is kafka-cluster",
    ]


def _secured(rules: Rules = Rules.KAFKA_4_3) -> Cluster:
    return Cluster(rules=rules, settings={"static_config": {AUTHORIZER: "StandardAuthorizer"}})


def _creation(acl: dict[str, str]) -> Creation:
    return Creation(
        resource_type=ResourceType[acl["type"]],
        resource_name=acl["name"],
        resource_pattern_type=PatternType[acl["pattern"]],
        principal=acl["principal"],
        host=acl["host"],
        operation=Operation[acl["operation"]],
        permission_type=Permission[acl["permission"]],
    )


def _fields(creation: Creation) -> dict[str, Any]:
    return {spec.name: getattr(creation, spec.name) for spec in creation.schema}


def _filter(requested: dict[str, Any]) -> Filter:
    return Filter(
        resource_type_filter=ResourceType[requested["type"]],
        resource_name_filter=requested["name"],
        pattern_type_filter=PatternType[requested["pattern"]],
        principal_filter=requested["principal"],
        host_filter=requested["host"],
        operation=Operation[requested["operation"]],
        permission_type=Permission[requested["permission"]],
    )


def _described(acl: Any) -> tuple[Any, ...]:
    return (
        ResourceType(acl.resource_type).name,
        acl.resource_name,
        PatternType(acl.pattern_type).name,
        acl.principal,
        acl.host,
        Operation(acl.operation).name,
        Permission(acl.permission_type).name,
    )


def _of_acl(acl: Acl) -> tuple[Any, ...]:
    return (
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
    )


def _recorded(acl: dict[str, str]) -> tuple[Any, ...]:
    return tuple(
        acl[field]
        for field in ("type", "name", "pattern", "principal", "host", "operation", "permission")
    )
