"""Access control entries, SCRAM credentials and delegation tokens.

Source:  KIP-801, KIP-900, KIP-48; AclsImage, ScramImage, DelegationTokenImage.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.tables import Fold, Table
from minicluster.protocol.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from minicluster.protocol.uuids import format_uuid
from minicluster.values import Value


class AccessControlEntry(Value, kw_only=True):
    """A permission or a denial of an operation on a resource."""

    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class ScramCredential(Value, kw_only=True):
    """The salted keys of a user's password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class DelegationToken(Value, kw_only=True):
    """A token of an owner. Times are milliseconds since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


Acls = Table[UUID, AccessControlEntry]
ScramKey = tuple[int, str]
"""(mechanism, user)"""
Scram = Table[ScramKey, ScramCredential]
DelegationTokens = Table[str, DelegationToken]


def add_acl(acls: Acls, record: AccessControlEntryRecord, _: int) -> Acls:
    """Apply an AccessControlEntryRecord; an id is given once."""
    if record.id in acls:
        raise ReplayError(f"access control entry {format_uuid(record.id)} comes a second time")
    entry = AccessControlEntry(
        id=record.id,
        resource_type=record.resource_type,
        resource_name=record.resource_name,
        pattern_type=record.pattern_type,
        principal=record.principal,
        host=record.host,
        operation=record.operation,
        permission_type=record.permission_type,
    )
    return acls.put(record.id, entry)


def remove_acl(acls: Acls, record: RemoveAccessControlEntryRecord, _: int) -> Acls:
    """Apply a RemoveAccessControlEntryRecord."""
    if record.id not in acls:
        raise ReplayError(f"access control entry {format_uuid(record.id)} does not exist")
    return acls.remove(record.id)


def set_scram(scram: Scram, record: UserScramCredentialRecord, _: int) -> Scram:
    """Apply a UserScramCredentialRecord."""
    credential = ScramCredential(
        salt=record.salt,
        stored_key=record.stored_key,
        server_key=record.server_key,
        iterations=record.iterations,
    )
    return scram.put((record.mechanism, record.name), credential)


def remove_scram(scram: Scram, record: RemoveUserScramCredentialRecord, _: int) -> Scram:
    """Apply a RemoveUserScramCredentialRecord."""
    if (record.mechanism, record.name) not in scram:
        raise ReplayError(f"user {record.name} has no credential of mechanism {record.mechanism}")
    return scram.remove((record.mechanism, record.name))


def set_token(tokens: DelegationTokens, record: DelegationTokenRecord, _: int) -> DelegationTokens:
    """Apply a DelegationTokenRecord, which also renews a token."""
    token = DelegationToken(
        owner=record.owner,
        requester=record.requester,
        renewers=tuple(record.renewers),
        issue_timestamp=record.issue_timestamp,
        max_timestamp=record.max_timestamp,
        expiration_timestamp=record.expiration_timestamp,
    )
    return tokens.put(record.token_id, token)


def remove_token(
    tokens: DelegationTokens, record: RemoveDelegationTokenRecord, _: int
) -> DelegationTokens:
    """Apply a RemoveDelegationTokenRecord; an unknown token is gone already."""
    return tokens.remove(record.token_id)


ACL_FOLDS: dict[type, Fold] = {
    AccessControlEntryRecord: add_acl,
    RemoveAccessControlEntryRecord: remove_acl,
}
SCRAM_FOLDS: dict[type, Fold] = {
    UserScramCredentialRecord: set_scram,
    RemoveUserScramCredentialRecord: remove_scram,
}
TOKEN_FOLDS: dict[type, Fold] = {
    DelegationTokenRecord: set_token,
    RemoveDelegationTokenRecord: remove_token,
}
