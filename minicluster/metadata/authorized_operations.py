"""The operations that a client may do, all of them: no broker here has an authorizer.

Source:  AuthHelper.authorizedOperations, AclEntry.supportedOperations.
"""

from __future__ import annotations

NOT_REQUESTED = -(1 << 31)

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = range(3, 9)
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = range(9, 13)


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


ON_TOPIC = _bits(
    _READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS
)
ON_CLUSTER = _bits(
    _CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS,
    _IDEMPOTENT_WRITE,
)  # fmt: skip
ON_GROUP = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
