"""Authorization in front of a node's handlers: what somebody may not ask is taken out before.

Kafka's handlers ask their authorizer first, pass on what is allowed, and add the errors of the rest
to the response. That is done here around a handler, so that handlers, machines and coordinators
know nothing of principals: a *screen* takes a request and gives what is left of it, with a function
that completes the response; or the response at once, where nothing may be asked.

    whole     one right for the whole request: a group's, a transactional id's, the cluster's
    each      one right for each item of an array: topics, groups, resources
    shown     the request may be asked, and the response leaves out what may not be seen

Screens are put in a row by `in_order`: the first that rejects the whole ends it, as in Kafka the
group comes before the topics.

Source:  AuthHelper, KafkaApis, ControllerApis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_items, error_response
from minicluster.security.acls import CLUSTER_NAME, Operation, ResourceType
from minicluster.security.authorizer import StandardAuthorizer
from minicluster.security.principals import Requester
from minicluster.values import Value, replace

Complete = Callable[[Any], Any]

FAILED = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Access(Value):
    """The rights of a requester on a node. Without an authorizer: everything."""

    authorizer: StandardAuthorizer | None
    requester: Requester

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether he may do this with a resource."""
        return self.authorizer is None or self.authorizer.authorizes(
            self.requester, operation, resource_type, name
        )

    def may_on_cluster(self, operation: Operation) -> bool:
        """Whether he may do this with the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_on_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether he may do this with some resource of a type."""
        return self.authorizer is None or self.authorizer.authorizes_any(
            self.requester, operation, resource_type
        )

    def operations(self, resource_type: ResourceType, name: str, supported: int) -> int:
        """Of the operations in a bit set those that he may do.

        Source:  AuthHelper.authorizedOperations.
        """
        return sum(
            1 << operation
            for operation in Operation
            if supported >> operation & 1 and self.may(operation, resource_type, name)
        )


EVERYTHING = Access(None, Requester())
"""Of the cluster itself, and of everybody where there is no authorizer."""


class Asked(Value):
    """A request as it came: what a screen looks at."""

    access: Access
    request: Any
    version: int
    image: MetadataImage
    creates_topics: bool = False
    """Whether the node makes topics on demand."""


class Screened(Value):
    """The rest of a request, and what completes the response to that."""

    request: Any
    complete: Complete = lambda response: response


class Rejected(Value):
    """The response to a request of which nothing may be asked."""

    response: Any


CLOSES = object()
"""As a response: the connection ends without one."""

Screen = Callable[[Asked], Screened | Rejected]


def open_to_all(asked: Asked) -> Screened:
    """No right is needed."""
    return Screened(asked.request)


def in_order(*screens: Screen) -> Screen:
    """Several screens, one after the other; the first that rejects the whole ends it."""

    def screen(asked: Asked) -> Screened | Rejected:
        completes: list[Complete] = []
        for each_screen in screens:
            screened = each_screen(asked)
            if isinstance(screened, Rejected):
                return screened
            asked = replace(asked, request=screened.request)
            completes.append(screened.complete)

        def complete(response: Any) -> Any:
            for one in reversed(completes):
                response = one(response)
            return response

        return Screened(asked.request, complete)

    return screen


def whole(
    operation: Operation,
    resource_type: ResourceType,
    name: Callable[[Any], str | None],
    *,
    in_items: bool = False,
) -> Screen:
    """One right for the request as a whole.

    Shapes:  name: of the resource, None for a request that needs no right. in_items: the error
             stands at each item, and not at the top.
    """

    def screen(asked: Asked) -> Screened | Rejected:
        named = name(asked.request)
        if named is None or asked.access.may(operation, resource_type, named):
            return Screened(asked.request)
        error = FAILED[resource_type]
        if in_items:
            return Rejected(error_items(asked.request, error, version=asked.version))
        return Rejected(error_response(asked.request, error, version=asked.version))

    return screen


def cluster(operation: Operation, *, says_what_is_needed: bool = True) -> Screen:
    """A right on the cluster.

    Shapes:  says_what_is_needed: the error has a text where the response has a place for one.
    """

    def screen(asked: Asked) -> Screened | Rejected:
        if asked.access.may_on_cluster(operation):
            return Screened(asked.request)
        return Rejected(
            error_response(
                asked.request,
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                needs(operation) if says_what_is_needed else None,
                version=asked.version,
            )
        )

    return screen


def needs(operation: Operation) -> str:
    """The text of a right on the cluster that is missing (AuthHelper.authorizeClusterOperation)."""
    return f"Request needs {operation.name} permission."


def each(
    items: str,
    operation: Operation,
    resource_type: ResourceType,
    name: Callable[[Any, MetadataImage], str | None],
    *,
    denied_first: bool = False,
) -> Screen:
    """One right for each item of an array; what is not allowed gets its error in the response.

    Shapes:  items: the array's field. name: of an item's resource; None for one that the handler
             is to find out about, as an id that no topic has. denied_first: its errors precede
             what the handler has found.
    """

    def screen(asked: Asked) -> Screened | Rejected:
        listed = getattr(asked.request, items)
        if not listed:
            return Screened(asked.request)
        known: dict[str | None, bool] = {None: True}
        denied = []
        for item in listed:
            named = name(item, asked.image)
            if named not in known:
                known[named] = asked.access.may(operation, resource_type, str(named))
            if not known[named]:
                denied.append(item)
        return without(asked, items, denied, FAILED[resource_type], denied_first=denied_first)

    return screen


def without(
    asked: Asked,
    items: str,
    denied: Iterable[Any],
    error: ErrorCode,
    *,
    denied_first: bool = False,
) -> Screened:
    """A request without some items of an array, which get an error in the response."""
    denied = tuple(denied)
    if not denied:
        return Screened(asked.request)
    dropped = {id(item) for item in denied}
    left = tuple(item for item in getattr(asked.request, items) if id(item) not in dropped)
    rejected = error_items(replace(asked.request, **{items: denied}), error, version=asked.version)

    def complete(response: Any) -> Any:
        return joined(rejected, response) if denied_first else joined(response, rejected)

    return Screened(replace(asked.request, **{items: left}), complete)


def joined(response: Any, more: Any) -> Any:
    """A response with the items of another one behind its own."""
    arrays = {
        spec.name: getattr(response, spec.name) + getattr(more, spec.name)
        for spec in response.schema
        if isinstance(getattr(more, spec.name), tuple) and getattr(more, spec.name)
    }
    return replace(response, **arrays)


def of_acls(screen: Screen) -> Screen:
    """A request about ACLs. One with an UNKNOWN in it cannot be read: the connection ends.

    Source:  CreateAclsRequest, DescribeAclsRequest and DeleteAclsRequest, where they validate.
    """

    def read(asked: Asked) -> Screened | Rejected:
        request = asked.request
        for one in getattr(request, "creations", getattr(request, "filters", (request,))):
            numbers = (getattr(one, spec.name) for spec in one.schema if spec.type_ == "int8")
            if 0 in numbers:
                return Rejected(CLOSES)
        return screen(asked)

    return read


def as_requested(
    requested: Iterable[Any], shown: Iterable[Any], name: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """The items of a response in the order in which the request has their names."""
    places: dict[Any, int] = {}
    for place, named in enumerate(requested):
        places.setdefault(named, place)
    return tuple(sorted(shown, key=lambda item: places.get(name(item), len(places))))


def by_name(item: Any, image: MetadataImage) -> str | None:
    """The name that an item has; that of its topic where it has an id alone.

    None for an id that no topic has: a handler rejects it first, as Kafka does.
    """
    for field in ("name", "topic", "topic_name"):
        named = getattr(item, field, None)
        if named:
            return str(named)
    topic = image.topics.get(item.topic_id)
    return topic.name if topic is not None else None
