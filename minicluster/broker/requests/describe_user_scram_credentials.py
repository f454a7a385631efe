"""DescribeUserScramCredentials (50): which users have which credentials (KIP-554).

Versions:  0.
"""

from __future__ import annotations

from collections import Counter

from minicluster.broker.api_state import ApiState
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Response = DescribeUserScramCredentialsResponse
Result = Response.DescribeUserScramCredentialsResult


def describe_user_scram_credentials(
    state: ApiState, request: DescribeUserScramCredentialsRequest, version: int, now_ms: int
) -> DescribeUserScramCredentialsResponse:
    """The mechanisms and iterations of each user; no user means all that have any.

    Errors:  per user RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE for one that comes twice.
    Source:  ScramImage.describe.
    """
    of_user: dict[str, dict[int, int]] = {}
    for (mechanism, user), credential in state.image.scram.rows.items():
        of_user.setdefault(user, {})[mechanism] = credential.iterations
    times = Counter(user.name for user in request.users or ())
    results = []
    for user in hash_map_order(times or of_user, string_hash):
        if times[user] > 1:
            results.append(
                Result(
                    user=user,
                    error_code=ErrorCode.DUPLICATE_RESOURCE,
                    error_message="Cannot describe SCRAM credentials for the same user twice in a "
                    f"single request: {user}",
                )
            )
        elif user not in of_user:
            results.append(
                Result(
                    user=user,
                    error_code=ErrorCode.RESOURCE_NOT_FOUND,
                    error_message="Attempt to describe a user credential that does not exist: "
                    f"{user}",
                )
            )
        else:
            results.append(
                Result(
                    user=user,
                    error_message="",
                    credential_infos=tuple(
                        Response.CredentialInfo(mechanism=mechanism, iterations=iterations)
                        for mechanism, iterations in sorted(of_user[user].items())
                    ),
                )
            )
    return Response(error_message="", results=tuple(results))
