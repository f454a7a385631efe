"""A node's authorizer around its handlers.

A request of a client goes through its API's screen before a handler sees it, and its response
through what the screen has left to add (``minicluster/security/screening.py``). Requests of the
cluster itself have no requester and are not screened: in Kafka, too, a cluster whose own nodes are
no super users does not start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.actors.links import Packet
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol.error_responses import error_response
from minicluster.rules import Rules
from minicluster.security.authorizer import (
    AuthorizerNotReady,
    AuthorizerSettings,
    NeverDecided,
    SearchFailed,
    StandardAuthorizer,
)
from minicluster.security.screening import Access, Asked, Rejected, Screen

AUTHORIZER = "authorizer.class.name"
SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"


def authorizer_of(static: Mapping[str, Any], rules: Rules) -> StandardAuthorizer | None:
    """The authorizer that a node's configs ask for; None where they name none."""
    if not static.get(AUTHORIZER):
        return None
    settings = AuthorizerSettings.of(
        str(static.get(SUPER_USERS, "")), str(static.get(ALLOW_EVERYONE, "false"))
    )
    return StandardAuthorizer(settings, rules)


def access_of(packet: Packet, authorizer: StandardAuthorizer | None) -> Access | None:
    """What the sender of a request may do; None where everything is allowed."""
    requester = packet.exchange.requester
    return None if authorizer is None or requester is None else Access(authorizer, requester)


def screened(
    packet: Packet,
    access: Access,
    screens: Mapping[type[Message], Screen],
    image: MetadataImage,
    *,
    creates_topics: bool = False,
) -> Any:
    """Take out of a request what may not be asked.

    Shapes:  -> None: a handler is to see what is left; else the response.
    Errors:  UNKNOWN_SERVER_ERROR while the ACLs are not loaded, as Kafka has it.
    """
    request, version = packet.body, packet.exchange.version
    screen = screens.get(type(request))
    if screen is None:
        return None
    try:
        result = screen(Asked(access, request, version, image, creates_topics))
    except (AuthorizerNotReady, SearchFailed):
        return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, version=version)
    if isinstance(result, Rejected):
        return result.response
    packet.body, packet.complete = result.request, result.complete
    return None


__all__ = ["NeverDecided", "access_of", "authorizer_of", "screened"]
