"""Faults of authorizers and logins, and of the record of what they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minicluster.planting import Plantable, plant
from minicluster.security import authorizer, secret_fields
from minicluster.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from minicluster.security.authorizer import StandardAuthorizer
from minicluster.security.principals import Requester
from minicluster.security.sasl import SaslAuthenticator
from minicluster.values import replace

ByResource = dict[tuple[ResourceType, str], list[Acl]]


@plant(authorizer.matching_acls, "s80_denials_ignored")
def _s80(
    original: Callable[..., list[Acl]],
    node: StandardAuthorizer,
    named: list[Acl],
    requester: Requester,
    operation: Operation,
) -> list[Acl]:
    matching = original(node, named, requester, operation)
    allowing = [acl for acl in matching if acl.permission is not Permission.DENY]
    if len(allowing) < len(matching):
        node.hit("S80")
    return allowing


@plant(authorizer.by_resource, "s81_revocations_unseen")
def _s81(
    original: Callable[..., ByResource], node: StandardAuthorizer, acls: Iterable[Acl]
) -> ByResource:
    given = list(acls)
    before = [acl for of_name in node.by_name.values() for acl in of_name]
    gone = [acl for acl in before if acl not in given]
    if gone:
        node.hit("S81")
    return original(node, [*given, *gone])


@plant(authorizer.by_resource, "s82_prefixes_unseen")
def _s82(
    original: Callable[..., ByResource], node: StandardAuthorizer, acls: Iterable[Acl]
) -> ByResource:
    literal = []
    for acl in acls:
        if acl.pattern_type is PatternType.PREFIXED:
            node.hit("S82")
            acl = replace(acl, pattern_type=PatternType.LITERAL)
        literal.append(acl)
    return original(node, literal)


@plant(SaslAuthenticator.has_expired, "s83_session_without_end")
def _s83(original: Callable[..., bool], login: SaslAuthenticator, now_ms: int) -> bool:
    if original(login, now_ms):
        login.hit("S83")
    return False


@plant(secret_fields.without_secrets, "s84_secrets_recorded")
def _s84(original: Callable[..., Any], recorder: Plantable, message: Any) -> Any:
    if original(recorder, message) != message:
        recorder.hit("S84")
    return message
