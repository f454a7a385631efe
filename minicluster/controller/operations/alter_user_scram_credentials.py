"""AlterUserScramCredentials (51): users and what proves their passwords (KIP-554, KIP-900).

Versions:  0.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from minicluster.protocol.records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    VersionedRecord,
)
from minicluster.security.acls import Operation

_HASHES = {1: "sha256", 2: "sha512"}
MIN_ITERATIONS, MAX_ITERATIONS = 4_096, 16_384

_TWICE = ApiError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)

Response = AlterUserScramCredentialsResponse
Result = Response.AlterUserScramCredentialsResult


def alter_user_scram_credentials(
    state: ClusterState, request: AlterUserScramCredentialsRequest, version: int, now_ms: int
) -> Decision:
    """Delete, then add or replace credentials; each user once, all records are one batch.

    Errors:  per user DUPLICATE_RESOURCE, UNSUPPORTED_VERSION (the metadata.version has no SCRAM),
             UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM, RESOURCE_NOT_FOUND.
    Source:  ScramControlManager.alterCredentials.
    """
    supported = state.gates.metadata_version.scram_supported
    accepted: dict[tuple[bool, str], Any] = {}
    errors: dict[str, ApiError] = {}
    changes: list[tuple[bool, Any]] = [(False, deletion) for deletion in request.deletions]
    changes += [(True, upsertion) for upsertion in request.upsertions]
    for is_upsertion, change in changes:
        user = change.name
        if user in errors:
            continue
        earlier = [key for key in ((False, user), (True, user)) if key in accepted]
        if earlier:
            error = _TWICE
            del accepted[earlier[0]]
        elif not supported:
            unsupported = "The current metadata.version does not support SCRAM"
            error = ApiError(ErrorCode.UNSUPPORTED_VERSION, unsupported)
        else:
            error = _problem(state, change, is_upsertion)
        if error:
            errors[user] = error
        else:
            accepted[is_upsertion, user] = change
    return _decision(accepted, errors)


def _decision(accepted: dict[tuple[bool, str], Any], errors: dict[str, ApiError]) -> Decision:
    """Deletions, upsertions and refusals, each in the order of a hash map."""
    records, results = [], []
    for kind, make in ((False, _deletion), (True, _upsertion)):
        of_kind = {user: change for (k, user), change in accepted.items() if k is kind}
        for user in hash_map_order(of_kind, string_hash):
            if kind and not of_kind[user].salted_password:
                # Java makes no key of no bytes (ScramFormatter.hmac), found after all other checks.
                errors[user] = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
                continue
            records.append(VersionedRecord(make(of_kind[user]), 0))
            results.append(Result(user=user, error_message=None))
    for user in hash_map_order(errors, string_hash):
        error = errors[user]
        results.append(Result(user=user, error_code=error.error, error_message=error.message))
    return Decision(records=tuple(records), response=Response(results=tuple(results)), atomic=True)


def _problem(state: ClusterState, change: Any, is_upsertion: bool) -> ApiError:
    if not change.name:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in _HASHES:
        return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if is_upsertion:
        if change.iterations < MIN_ITERATIONS:
            return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if change.iterations > MAX_ITERATIONS:
            return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    elif state.image.scram.get((change.mechanism, change.name)) is None:
        return ApiError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
    return ApiError()


def _deletion(change: Any) -> RemoveUserScramCredentialRecord:
    return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)


def _upsertion(change: Any) -> UserScramCredentialRecord:
    """The keys that RFC 5802 derives from the salted password."""
    name = _HASHES[change.mechanism]
    client_key = hmac.digest(change.salted_password, b"Client Key", name)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=hashlib.new(name, client_key).digest(),
        server_key=hmac.digest(change.salted_password, b"Server Key", name),
        iterations=change.iterations,
    )


API = ControllerApi(
    AlterUserScramCredentialsRequest,
    lambda call: alter_user_scram_credentials(*call.plain),
    items=("deletions", "upsertions"),
    nothing=AlterUserScramCredentialsResponse(),
    right=Operation.ALTER,
)
