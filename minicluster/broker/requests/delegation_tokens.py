"""DescribeDelegationToken (41), and what a broker rejects of the other requests about tokens.

Versions:  CreateDelegationToken 1-3, RenewDelegationToken 1-2, ExpireDelegationToken 1-2,
           DescribeDelegationToken 1-3.
"""

from __future__ import annotations

from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.metadata.image.security import DelegationToken
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_response
from minicluster.security.acls import Operation, ResourceType
from minicluster.security.delegation_tokens import (
    may_create,
    may_handle,
    owner_and_requester,
    owner_of,
    secret_key_of,
    token_hmac,
)
from minicluster.security.principals import USER, KafkaPrincipal
from minicluster.security.screening import Access
from minicluster.values import replace

_Described = m.DescribeDelegationTokenResponse.DescribedDelegationToken
_Renewer = m.DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer


def respond_to_token_request(
    state: ApiState, request: Any, version: int, access: Access
) -> Any | None:
    """The response; None for a request that the controller is to decide.

    Errors:  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (see `may_handle`); of a creation
             DELEGATION_TOKEN_AUTHORIZATION_FAILED for an owner for whom the client may make none,
             INVALID_PRINCIPAL_TYPE for a renewer who is no user, UNKNOWN_SERVER_ERROR for an owner
             without a type; of a description DELEGATION_TOKEN_AUTH_DISABLED.
    Source:  KafkaApis.handleCreateTokenRequest, handleRenewTokenRequest, handleExpireTokenRequest,
             handleDescribeTokensRequest.
    """
    if not may_handle(access.requester):
        return _rejected(request, version, access, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if isinstance(request, m.DescribeDelegationTokenRequest):
        return _describe(state, request, version, access)
    if not isinstance(request, m.CreateDelegationTokenRequest):
        return None
    if owner_of(request, access.requester.principal) is None:
        return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, version=version)
    if not may_create(request, access):
        error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        return _rejected(request, version, access, error)
    if any(renewer.principal_type != USER for renewer in request.renewers):
        return _rejected(request, version, access, ErrorCode.INVALID_PRINCIPAL_TYPE)
    return None


def _rejected(request: Any, version: int, access: Access, error: ErrorCode) -> Any:
    response = error_response(request, error, version=version)
    if isinstance(request, m.DescribeDelegationTokenRequest):
        return response
    if not isinstance(request, m.CreateDelegationTokenRequest):
        return replace(response, expiry_timestamp_ms=-1)
    requester = access.requester.principal
    owner = owner_of(request, requester) or requester
    return replace(response, **owner_and_requester(owner, requester, version))


def _describe(
    state: ApiState, request: m.DescribeDelegationTokenRequest, version: int, access: Access
) -> m.DescribeDelegationTokenResponse:
    """The tokens of the owners, or all: those that the client owns or renews, or may describe."""
    secret_key = secret_key_of(state.config.static)
    if secret_key is None:
        error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        return m.DescribeDelegationTokenResponse(error_code=error)
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    return m.DescribeDelegationTokenResponse(
        tokens=tuple(
            _described(token_id, token, token_hmac(secret_key, token_id), version)
            for token_id, token in state.image.delegation_tokens.items()
            if (owners is None or owners & {token.owner, *token.renewers})
            and _is_shown(token_id, token, access)
        )
    )


def _is_shown(token_id: str, token: DelegationToken, access: Access) -> bool:
    """Source: DelegationTokenManager.filterToken."""
    return (
        str(access.requester.principal) in (token.owner, *token.renewers)
        or access.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token_id)
        or access.may(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(token_id: str, token: DelegationToken, secret: bytes, version: int) -> _Described:
    owner, requester = KafkaPrincipal.parse(token.owner), KafkaPrincipal.parse(token.requester)
    renewers = map(KafkaPrincipal.parse, token.renewers)
    return _Described(
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token_id,
        hmac=secret,
        renewers=tuple(
            _Renewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in renewers
        ),
        **owner_and_requester(owner, requester, version),
    )
