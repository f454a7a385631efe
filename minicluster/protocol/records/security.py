"""Records about ACLs, SCRAM credentials and delegation tokens.

Versions: AccessControlEntryRecord 0, RemoveAccessControlEntryRecord 0, UserScramCredentialRecord
          0, RemoveUserScramCredentialRecord 0, DelegationTokenRecord 0,
          RemoveDelegationTokenRecord 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=18, kind="metadata", versions="0", flexible="0+")
class AccessControlEntryRecord(s.Message):
    """An ACL has been made."""

    id: UUID = s.uuid("0+", default=ZERO_UUID)
    resource_type: int = s.int8("0+", default=0)
    resource_name: str = s.string("0+", default="")
    pattern_type: int = s.int8("0+", default=0)
    principal: str = s.string("0+", default="")
    host: str = s.string("0+", default="")
    operation: int = s.int8("0+", default=0)
    permission_type: int = s.int8("0+", default=0)


@s.message(api_key=19, kind="metadata", versions="0", flexible="0+")
class RemoveAccessControlEntryRecord(s.Message):
    """An ACL is gone."""

    id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=11, kind="metadata", versions="0", flexible="0+")
class UserScramCredentialRecord(s.Message):
    """A user has got SCRAM credentials (KIP-900)."""

    name: str = s.string("0+", default="")
    mechanism: int = s.int8("0+", default=0)
    salt: bytes = s.bytes_("0+", default=b"")
    stored_key: bytes = s.bytes_("0+", default=b"")
    server_key: bytes = s.bytes_("0+", default=b"")
    iterations: int = s.int32("0+", default=0)


@s.message(api_key=22, kind="metadata", versions="0", flexible="0+")
class RemoveUserScramCredentialRecord(s.Message):
    """A user's SCRAM credentials are gone."""

    name: str = s.string("0+", default="")
    mechanism: int = s.int8("0+", default=0)


@s.message(api_key=10, kind="metadata", versions="0", flexible="0+")
class DelegationTokenRecord(s.Message):
    """A delegation token has been made or renewed (KIP-900)."""

    owner: str = s.string("0+", default="")
    requester: str = s.string("0+", default="")
    renewers: tuple[str, ...] = s.array("string", "0+", default=())
    issue_timestamp: int = s.int64("0+", default=0)
    max_timestamp: int = s.int64("0+", default=0)
    expiration_timestamp: int = s.int64("0+", default=0)
    token_id: str = s.string("0+", default="")


@s.message(api_key=26, kind="metadata", versions="0", flexible="0+")
class RemoveDelegationTokenRecord(s.Message):
    """A delegation token is gone."""

    token_id: str = s.string("0+", default="")
