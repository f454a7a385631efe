"""Create-, Renew- and ExpireDelegationToken (38-40): credentials that end (KIP-48, KIP-900).

Versions:  CreateDelegationToken 1-3, RenewDelegationToken 1-2, ExpireDelegationToken 1-2.
Units:     times in milliseconds since 1970.
"""

from __future__ import annotations

import hmac
from typing import Any

from minicluster.controller.api import Call, ControllerApi, Screened
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Rejected
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.security import DelegationToken
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from minicluster.protocol.records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    VersionedRecord,
)
from minicluster.protocol.uuids import format_uuid
from minicluster.security.delegation_tokens import (
    may_create,
    may_handle,
    owner_and_requester,
    owner_of,
    secret_key_of,
    token_hmac,
)
from minicluster.security.principals import USER

_NO_TIMES = {"issue_timestamp_ms": -1, "expiry_timestamp_ms": -1, "max_timestamp_ms": -1}
_LONG_MAX = (1 << 63) - 1


def create_delegation_token(call: Call) -> Decision:
    """Make a token. Its secret is in the response alone; nodes make it again from its id.

    Errors:  DELEGATION_TOKEN_AUTHORIZATION_FAILED without CREATE_TOKENS on another owner,
             DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION, INVALID_PRINCIPAL_TYPE.
    Source:  DelegationTokenControlManager.createDelegationToken.
    """
    state, request, requester = call.state, call.request, call.access.requester.principal
    owner = owner_of(request, requester) or requester
    fields: dict[str, Any] = owner_and_requester(owner, requester, call.version)
    error = _disabled(state)
    if not may_create(request, call.access):
        error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        fields |= _NO_TIMES
    elif not error and any(renewer.principal_type != USER for renewer in request.renewers):
        error = ErrorCode.INVALID_PRINCIPAL_TYPE
    if error:
        return Decision(response=CreateDelegationTokenResponse(error_code=error, **fields))
    settings, now_ms = state.settings, _time_ms(state, call.now_ms)
    lifetime_ms = settings.token_lifetime_max_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_timestamp = min(_LONG_MAX, now_ms + lifetime_ms)
    token_id = format_uuid(call.new_topic_id())
    token = DelegationToken(
        owner=str(owner),
        requester=str(requester),
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp=now_ms,
        max_timestamp=max_timestamp,
        expiration_timestamp=min(max_timestamp, now_ms + settings.token_expiry_ms),
    )
    response = CreateDelegationTokenResponse(
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiration_timestamp,
        max_timestamp_ms=token.max_timestamp,
        token_id=token_id,
        hmac=token_hmac(secret_key_of(settings.static_config) or b"", token_id),
        **fields,
    )
    record = _record(token_id, token, token.expiration_timestamp)
    return Decision(records=(record,), response=response, atomic=True)


def renew_delegation_token(call: Call) -> Decision:
    """Let a token expire later, up to its maximum. Its owner and its renewers may.

    Errors:  DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION, DELEGATION_TOKEN_NOT_FOUND,
             DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH.
    Source:  DelegationTokenControlManager.renewDelegationToken.
    """
    error, found = _found(call)
    now_ms = _time_ms(call.state, call.now_ms)
    if found is not None and _has_expired(found[1], now_ms):
        error = ErrorCode.DELEGATION_TOKEN_EXPIRED
    elif found is not None and not _may_renew(call, found[1]):
        error = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    if error or found is None:
        return Decision(response=RenewDelegationTokenResponse(error_code=error))
    token_id, token = found
    period_ms = call.state.settings.token_expiry_ms
    if call.request.renew_period_ms > 0:
        period_ms = min(period_ms, call.request.renew_period_ms)
    expiry = min(token.max_timestamp, now_ms + period_ms)
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=expiry)
    return Decision(records=(_record(token_id, token, expiry),), response=response, atomic=True)


def expire_delegation_token(call: Call) -> Decision:
    """Let a token expire in a time, or remove it at once if that is negative.

    Errors:  those of `renew_delegation_token`. A token that has expired can still be removed.
    Source:  DelegationTokenControlManager.expireDelegationToken.
    """
    error, found = _found(call)
    now_ms = _time_ms(call.state, call.now_ms)
    period_ms = call.request.expiry_time_period_ms
    if found is not None and not _may_renew(call, found[1]):
        error = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    elif found is not None and period_ms >= 0 and _has_expired(found[1], now_ms):
        error = ErrorCode.DELEGATION_TOKEN_EXPIRED
    if error or found is None:
        return Decision(response=ExpireDelegationTokenResponse(error_code=error))
    token_id, token = found
    if period_ms < 0:
        expiry, record = now_ms, _removal(token_id)
    else:
        expiry = min(token.max_timestamp, now_ms + period_ms)
        record = _record(token_id, token, expiry)
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry)
    return Decision(records=(record,), response=response, atomic=True)


def sweep_expired_tokens(state: ClusterState, now_ms: int) -> Decision:
    """Remove the tokens that have expired; until then they are still listed."""
    expired = tuple(
        _removal(token_id)
        for token_id, token in state.image.delegation_tokens.items()
        if _has_expired(token, _time_ms(state, now_ms))
    )
    return Decision(records=expired, response=False)


def _time_ms(state: ClusterState, now_ms: int) -> int:
    """The time of day, by which tokens are issued and expire."""
    return state.settings.epoch_ms + now_ms


def _disabled(state: ClusterState) -> ErrorCode:
    if secret_key_of(state.settings.static_config) is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if not state.gates.metadata_version.delegation_tokens_supported:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def _found(call: Call) -> tuple[ErrorCode, tuple[str, DelegationToken] | None]:
    """The committed token that an HMAC belongs to, with its id; or what is wrong."""
    error = _disabled(call.state)
    if error:
        return error, None
    secret_key = secret_key_of(call.state.settings.static_config) or b""
    for token_id, token in call.committed.delegation_tokens.items():
        if hmac.compare_digest(token_hmac(secret_key, token_id), call.request.hmac):
            return ErrorCode.NONE, (token_id, token)
    return ErrorCode.DELEGATION_TOKEN_NOT_FOUND, None


def _has_expired(token: DelegationToken, now_ms: int) -> bool:
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def _may_renew(call: Call, token: DelegationToken) -> bool:
    return str(call.access.requester.principal) in (token.owner, *token.renewers)


def _record(token_id: str, token: DelegationToken, expiration_timestamp: int) -> VersionedRecord:
    record = DelegationTokenRecord(
        token_id=token_id,
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expiration_timestamp,
    )
    return VersionedRecord(record, 0)


def _removal(token_id: str) -> VersionedRecord:
    return VersionedRecord(RemoveDelegationTokenRecord(token_id=token_id), 0)


def _screen(call: Call) -> Screened:
    """Reject those who may not ask about tokens, before anything is looked at.

    Errors:  Rejected with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (see `may_handle`);
             UNKNOWN_SERVER_ERROR for an owner without a type.
    """
    if not may_handle(call.access.requester):
        raise Rejected(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if (
        isinstance(call.request, CreateDelegationTokenRequest)
        and owner_of(call.request, call.access.requester.principal) is None
    ):
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Screened(call.request, lambda response: response)


CREATE_DELEGATION_TOKEN = ControllerApi(
    CreateDelegationTokenRequest, create_delegation_token, screen=_screen
)
RENEW_DELEGATION_TOKEN = ControllerApi(
    RenewDelegationTokenRequest, renew_delegation_token, screen=_screen
)
EXPIRE_DELEGATION_TOKEN = ControllerApi(
    ExpireDelegationTokenRequest, expire_delegation_token, screen=_screen
)
