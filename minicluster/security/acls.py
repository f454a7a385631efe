"""ACLs: what they are about, which one a filter finds, and the order in which they are listed.

Source:  KIP-11, KIP-290 (prefixed patterns), KIP-801; AclBinding, ResourcePatternFilter,
         AccessControlEntryFilter, StandardAcl.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Self

from minicluster.metadata.image.security import AccessControlEntry
from minicluster.values import Value

WILDCARD = "*"
CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class _Code(IntEnum):
    """A number of Kafka's; one that nobody knows is UNKNOWN, which is 0."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls(0)


class ResourceType(_Code):
    """The kinds of resources that an ACL protects."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    """How the name of an ACL is compared with a resource's. ANY and MATCH are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(_Code):
    """The operations on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(_Code):
    """Whether an ACL allows or denies. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(Value, kw_only=True):
    """An ACL without its id: two that are equal are one, and the second is not written."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    @classmethod
    def of(cls, entry: AccessControlEntry) -> Acl:
        """The ACL of an entry of the image."""
        return cls(
            resource_type=ResourceType(entry.resource_type),
            resource_name=entry.resource_name,
            pattern_type=PatternType(entry.pattern_type),
            principal=entry.principal,
            host=entry.host,
            operation=Operation(entry.operation),
            permission=Permission(entry.permission_type),
        )

    def fields(self) -> dict[str, Any]:
        """Its fields, as records and responses name them: plain numbers, as they are read again."""
        return {
            "resource_type": int(self.resource_type),
            "resource_name": self.resource_name,
            "pattern_type": int(self.pattern_type),
            "principal": self.principal,
            "host": self.host,
            "operation": int(self.operation),
            "permission_type": int(self.permission),
        }


class AclFilter(Value, kw_only=True):
    """Which ACLs are meant. A name, principal or host of None, and ANY elsewhere, match all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @classmethod
    def of(cls, requested: Any) -> Self:
        """The filter of a DescribeAcls, or one of a DeleteAcls."""
        return cls(
            resource_type=ResourceType(requested.resource_type_filter),
            resource_name=requested.resource_name_filter,
            pattern_type=PatternType(requested.pattern_type_filter),
            principal=requested.principal_filter,
            host=requested.host_filter,
            operation=Operation(requested.operation),
            permission=Permission(requested.permission_type),
        )

    @property
    def problem(self) -> str | None:
        """Why the filter is rejected (AclControlManager.validateFilter); None if it is not."""
        if ResourceType.UNKNOWN is self.resource_type or PatternType.UNKNOWN is self.pattern_type:
            return "Unknown patternFilter."
        if Operation.UNKNOWN is self.operation or Permission.UNKNOWN is self.permission:
            return "Unknown entryFilter."
        return None

    def matches(self, acl: Acl) -> bool:
        """Whether the filter finds this ACL.

        MATCH finds whatever would apply to a resource of the filter's name: the literal name,
        ``*`` and prefixes. ANY with a name means exactly that name, literal or prefixed.
        """
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.resource_name == acl.resource_name
        if acl.pattern_type is PatternType.PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name in (self.resource_name, WILDCARD)


def problem_of(acl: Acl) -> str | None:
    """Why an ACL is rejected, the first reason in Kafka's order; None if it is not.

    Anything goes as a host, and any operation for any type.

    Source:  AclControlManager.validateNewAcl.
    """
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return f"Invalid resourceType {acl.resource_type.name}"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {acl.pattern_type.name}"
    if acl.operation in (Operation.UNKNOWN, Operation.ANY):
        return f"Invalid operation {acl.operation.name}"
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        return f"Invalid permissionType {acl.permission.name}"
    if not acl.resource_name:
        return "Resource name should not be empty"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    return None


def in_listed_order(acls: Iterable[Acl]) -> list[Acl]:
    """ACLs as Kafka lists them: by type, then by name from the last to the first, then the rest.

    Names go backwards so that a name's prefixes follow it. Texts have Java's order, by UTF-16.

    Source:  StandardAcl.compareTo.
    """
    rest = sorted(
        acls,
        key=lambda acl: (
            acl.pattern_type,
            acl.operation,
            _utf16(acl.principal),
            _utf16(acl.host),
            acl.permission,
        ),
    )
    by_name = sorted(rest, key=lambda acl: _utf16(acl.resource_name), reverse=True)
    return sorted(by_name, key=lambda acl: acl.resource_type)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
