"""Delegation tokens: what their holder proves, and who may ask for them.

The secret of a token is an HMAC of its id under delegation.token.secret.key, which all nodes share;
so no record holds it. In base64 it is the password by which the holder logs in.

Source:  KIP-48, KIP-373; DelegationTokenManager.createHmac, KafkaApis.allowTokenRequests.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import Any

from minicluster.protocol.messages import CreateDelegationTokenRequest
from minicluster.security.acls import Operation, ResourceType
from minicluster.security.principals import ANONYMOUS, KafkaPrincipal, Requester
from minicluster.security.screening import Access

SECRET_KEY = "delegation.token.secret.key"


def secret_key_of(static: Mapping[str, Any]) -> bytes | None:
    """The key of a node's configs; None where delegation tokens are not enabled."""
    return str(static.get(SECRET_KEY) or "").encode() or None


def token_hmac(secret_key: bytes, token_id: str) -> bytes:
    """The HMAC that a token's owner gets, and shows to renew or expire it."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def password(token: bytes) -> str:
    """The password of a token's holder, from its HMAC."""
    return base64.b64encode(token).decode()


def may_handle(requester: Requester) -> bool:
    """Whether somebody may ask about tokens at all.

    Not over a connection that anybody could read or make, and not by a token: its holder could
    else make another one whenever it ends.
    """
    protocol = requester.security_protocol
    is_one_way = protocol == "SSL" and requester.principal == ANONYMOUS
    return not (requester.is_token_authenticated or protocol == "PLAINTEXT" or is_one_way)


def owner_of(
    request: CreateDelegationTokenRequest, requester: KafkaPrincipal
) -> KafkaPrincipal | None:
    """Whose token is to be made: the requester's own, unless it names somebody else (KIP-373).

    None for a name without a type, which is not a principal.
    """
    if not request.owner_principal_name:
        return requester
    if request.owner_principal_type is None:
        return None
    return KafkaPrincipal(request.owner_principal_type, request.owner_principal_name)


def may_create(request: CreateDelegationTokenRequest, access: Access) -> bool:
    """Whether a client may make a token for the owner that it names: its own, or with the right."""
    owner = owner_of(request, access.requester.principal)
    return owner == access.requester.principal or access.may(
        Operation.CREATE_TOKENS, ResourceType.USER, str(owner)
    )


def owner_and_requester(
    owner: KafkaPrincipal, requester: KafkaPrincipal, version: int
) -> dict[str, str]:
    """The fields of a response that say whose a token is, and who has asked for it."""
    fields = {"principal_type": owner.type, "principal_name": owner.name}
    if version >= 3:
        fields["token_requester_principal_type"] = requester.type
        fields["token_requester_principal_name"] = requester.name
    return fields
