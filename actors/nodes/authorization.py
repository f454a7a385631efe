"""A node's authorizer around its handlers.

A request of a client goes through its API's screen before a handler sees it, and its response
through what the screen has left to add (``minicluster/security/screening.py``). Requests of the
cluster itself have no requester and are not screened: in Kafka, too, a cluster whose own nodes are
no super users does not start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.faults import Faults
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol.error_responses import error_response
from minicluster.rules import Rules
from minicluster.security.authorizer import (
    ALLOW_EVERYONE,
    AUTHORIZER,
    SUPER_USERS,
    AuthorizerNotReady,
    AuthorizerSettings,
    SearchFailed,
    StandardAuthorizer,
)
from minicluster.security.principals import Requester
from minicluster.security.screening import Access, Asked, Rejected, Screen, Screened


def authorizer_of(
    static: Mapping[str, Any], rules: Rules, faults: Faults
) -> StandardAuthorizer | None:
    """The authorizer that a node's configs ask for; None where they name none."""
    if not static.get(AUTHORIZER):
        return None
    settings = AuthorizerSettings.of(
        str(static.get(SUPER_USERS, "")), str(static.get(ALLOW_EVERYONE, "false"))
    )
    return StandardAuthorizer(settings, rules, faults)


def access_of(requester: Requester | None, authorizer: StandardAuthorizer | None) -> Access | None:
    """The rights of a request's sender; None where everything is allowed."""
    return None if authorizer is None or requester is None else Access(authorizer, requester)


def screened(screens: Mapping[type[Message], Screen], asked: Asked) -> Screened | Rejected:
    """Take out of a request what may not be asked.

    Errors:  UNKNOWN_SERVER_ERROR while the ACLs are not loaded, as Kafka has it. NeverDecided with
             Kafka's bug.
    """
    screen = screens.get(type(asked.request))
    if screen is None:
        return Screened(asked.request)
    try:
        return screen(asked)
    except (AuthorizerNotReady, SearchFailed):
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        return Rejected(error_response(asked.request, error, version=asked.version))
