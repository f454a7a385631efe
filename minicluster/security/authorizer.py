"""May this principal do this? The decision, from the ACLs of the metadata image.

In this order, the first that applies decides:

    a super user                        allowed
    the ACLs are not loaded yet         AuthorizerNotReady
    a DENY that matches                 denied
    an ALLOW that matches               allowed
    some ACL names the resource         denied
    none does                           allow.everyone.if.no.acl.found

An ACL *names* a resource by its name, a prefix of it, or ``*``. It *matches* if its principal, host
and operation do so as well. One ACL for another user is therefore enough to end what
allow.everyone.if.no.acl.found grants to everybody.

Source:  KIP-11, KIP-801; StandardAuthorizerData.authorize, Authorizer.authorizeByResourceType.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from minicluster.faults import Faults
from minicluster.metadata.image.security import Acls
from minicluster.planting import Planted, step
from minicluster.rules import Rules
from minicluster.security.acls import (
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    in_listed_order,
)
from minicluster.security.principals import EVERYBODY, Requester
from minicluster.values import Value

AUTHORIZER = "authorizer.class.name"
SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
_IMPLY_DESCRIBE = frozenset(
    (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
)
_IMPLY_DESCRIBE_CONFIGS = frozenset((Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS))


class AuthorizerNotReady(Exception):
    """The ACLs are not loaded yet, and only super users are known."""


class NeverDecided(Exception):
    """Kafka as shipped searches for ever; nobody gets a response."""


class SearchFailed(Exception):
    """Kafka as shipped fails with a StringIndexOutOfBoundsException."""


class AuthorizerSettings(Value, kw_only=True):
    """A node's configs of authorization."""

    super_users: frozenset[str] = frozenset()
    """As text: ``User:*`` is a user called ``*``."""
    allow_everyone_if_no_acl_found: bool = False

    @classmethod
    def of(cls, super_users: str, allow_everyone_if_no_acl_found: str) -> AuthorizerSettings:
        """The settings of two configs' texts; super users have semicolons between them.

        Whatever is not ``true`` is false.

        Source:  StandardAuthorizer.configure.
        """
        users = (user.strip() for user in super_users.split(";"))
        return cls(
            super_users=frozenset(user for user in users if user),
            allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found.strip().lower() == "true",
        )


class StandardAuthorizer(Planted):
    """One node's authorizer: it decides by the ACLs of the image that the node has published."""

    def __init__(
        self, settings: AuthorizerSettings, rules: Rules, faults: Faults = Faults.NONE
    ) -> None:
        super().__init__(faults)
        self.settings = settings
        self.is_loaded = False
        self.rules = rules
        self._acls: Acls | None = None
        self.by_name: dict[tuple[ResourceType, str], list[Acl]] = {}

    def publish(self, acls: Acls) -> None:
        """Decide by these ACLs from now on."""
        self.is_loaded = True
        if acls is self._acls:
            return
        self._acls = acls
        self.by_name = by_resource(self, map(Acl.of, acls.rows.values()))

    def enforces(self, acls: Acls) -> bool:
        """Whether it decides by just these ACLs."""
        return self._acls is not None and self._acls.fingerprint == acls.fingerprint

    def authorizes(
        self, requester: Requester, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether somebody may do something with a resource.

        Errors:  AuthorizerNotReady; NeverDecided and SearchFailed with Kafka's bugs.
        """
        if str(requester.principal) in self.settings.super_users:
            return True
        if not self.is_loaded:
            raise AuthorizerNotReady
        named = list(self._naming(resource_type, name))
        matching = matching_acls(self, named, requester, operation)
        is_denied = any(acl.permission is Permission.DENY for acl in matching)
        if self.rules.wildcard_search_starts_over and not is_denied:
            self._search_again(resource_type, name)
        if is_denied:
            return False
        if matching:
            return True
        return not named and self.settings.allow_everyone_if_no_acl_found

    def authorizes_any(
        self, requester: Requester, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether somebody may do something with *some* resource of a type.

        No operation implies another here. An ALLOW counts unless a DENY covers all that it covers.

        Errors:  ValueError for a type or operation that only filters have; as `authorizes`.
        Source:  KIP-679; Authorizer.authorizeByResourceType.
        """
        if min(operation, resource_type) <= Operation.ANY:
            raise ValueError(f"{resource_type.name} and {operation.name} are for filters")
        # That is how super users get through, and everybody where no ACL names it.
        if self.authorizes(requester, operation, resource_type, "hardcode"):
            return True
        allowed: set[tuple[PatternType, str]] = set()
        denied: set[tuple[PatternType, str]] = set()
        for acl in self._of_type(resource_type):
            if acl.operation in (operation, Operation.ALL) and _is_for(acl, requester):
                names = denied if acl.permission is Permission.DENY else allowed
                names.add((acl.pattern_type, acl.resource_name))
        every = (PatternType.LITERAL, WILDCARD)
        if every in denied:
            return False
        return every in allowed or any(
            (pattern, name) not in denied
            and not any((PatternType.PREFIXED, prefix) in denied for prefix in _prefixes(name))
            for pattern, name in allowed
        )

    def listed(self, acl_filter: AclFilter) -> list[Acl]:
        """The ACLs that a filter finds, in Kafka's order."""
        every = (acl for acls in self.by_name.values() for acl in acls)
        return in_listed_order(acl for acl in every if acl_filter.matches(acl))

    def _naming(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """The ACLs that name a resource: literally, by a prefix, or by ``*``."""
        for prefix in _prefixes(name):
            for acl in self.by_name.get((resource_type, prefix), ()):
                if acl.pattern_type is PatternType.PREFIXED or prefix == name:
                    yield acl
        if name == WILDCARD or (
            name.startswith(WILDCARD) and self.rules.wildcard_acl_skips_longer_names
        ):
            return
        for acl in self.by_name.get((resource_type, WILDCARD), ()):
            if acl.pattern_type is PatternType.LITERAL:
                yield acl

    def _of_type(self, resource_type: ResourceType) -> Iterator[Acl]:
        for (of_type, _), acls in self.by_name.items():
            if of_type is resource_type:
                yield from acls

    def _search_again(self, resource_type: ResourceType, name: str) -> None:
        """Look for ``*`` as Kafka 4.3 does, which goes on to the names that sort before it.

        Where one of them parts from the resource's name, Kafka continues from what both share, cut
        from ``*`` instead of from the resource's name: from ``*`` itself, for ever, or beyond its
        end. If they share nothing, the search is over.
        """
        acls = [acl for acl in self._of_type(resource_type) if acl.resource_name <= WILDCARD]
        before = [
            acl.resource_name
            for acl in in_listed_order(acls)
            if (acl.resource_name, acl.pattern_type) != (WILDCARD, PatternType.LITERAL)
        ]
        for other in before:
            shared = _shared(other, name)
            if shared == len(other):
                continue
            if shared == 1:
                raise NeverDecided
            if shared > 1:
                raise SearchFailed
            return


@step
def by_resource(
    authorizer: StandardAuthorizer, acls: Iterable[Acl]
) -> dict[tuple[ResourceType, str], list[Acl]]:
    """The ACLs of an image by the type and the name that each is about."""
    by_name = defaultdict(list)
    for acl in acls:
        by_name[acl.resource_type, acl.resource_name].append(acl)
    return dict(by_name)


@step
def matching_acls(
    authorizer: StandardAuthorizer, named: list[Acl], requester: Requester, operation: Operation
) -> list[Acl]:
    """Those among the ACLs about a resource that decide on a request."""
    return [acl for acl in named if _matches(acl, requester, operation)]


def _matches(acl: Acl, requester: Requester, operation: Operation) -> bool:
    """Whether an ACL that names the resource is about this principal, host and operation.

    An ALLOW of READ, WRITE, DELETE or ALTER implies DESCRIBE, one of ALTER_CONFIGS
    DESCRIBE_CONFIGS. A DENY implies nothing: who may not read may still describe.
    """
    if not _is_for(acl, requester):
        return False
    if acl.operation in (operation, Operation.ALL):
        return True
    if acl.permission is Permission.DENY:
        return False
    if operation is Operation.DESCRIBE:
        return acl.operation in _IMPLY_DESCRIBE
    return operation is Operation.DESCRIBE_CONFIGS and acl.operation in _IMPLY_DESCRIBE_CONFIGS


def _is_for(acl: Acl, requester: Requester) -> bool:
    return acl.principal in (str(requester.principal), str(EVERYBODY)) and acl.host in (
        WILDCARD,
        requester.host,
    )


def _prefixes(name: str) -> Iterable[str]:
    return (name[:length] for length in range(1, len(name) + 1))


def _shared(one: str, other: str) -> int:
    """How many characters two names begin with alike."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
