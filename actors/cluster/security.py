"""What a cluster's arguments say of its security.

``listeners`` names a protocol of Kafka's, ``users`` who may log in, ``super_users`` turns the
authorizer on. A user's password is known to PLAIN and, as records of the metadata log, to both
SCRAM mechanisms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from minicluster.actors.runtime import chance
from minicluster.errors import UserError, instead
from minicluster.protocol.records import UserScramCredentialRecord, VersionedRecord
from minicluster.security.authorizer import AUTHORIZER, SUPER_USERS
from minicluster.security.protocols import SecurityProtocol
from minicluster.security.scram import MECHANISMS as SCRAM
from minicluster.security.scram import MIN_ITERATIONS, credential, salted_password
from minicluster.values import dataclass

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What a cluster's arguments say.

    Shapes:  users: passwords by name; super_users: principals such as User:admin.
    """

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    super_users: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, listeners: object, users: Mapping[str, str] | None, super_users: Sequence[str]
    ) -> Security:
        """Read the arguments.

        Errors:  UserError for an unknown protocol, for SASL without users, and users without SASL.
        """
        protocol = SecurityProtocol.PLAINTEXT
        if isinstance(listeners, str):
            known = [str(name) for name in SecurityProtocol]
            if listeners not in known:
                raise UserError(
                    f"listeners: unknown protocol {listeners!r}; {instead(listeners, known)}"
                )
            protocol = SecurityProtocol(listeners)
        if protocol.has_sasl and not users:
            raise UserError(f'listeners: {protocol} needs users={{"alice": "secret"}} who log in')
        names = (user if ":" in user else f"User:{user}" for user in super_users)
        return cls(protocol=protocol, users=dict(users or {}), super_users=tuple(names))

    def config(self) -> dict[str, str]:
        """The configs that follow from super_users."""
        if not self.super_users:
            return {}
        return {AUTHORIZER: STANDARD_AUTHORIZER, SUPER_USERS: ";".join(self.super_users)}

    def bootstrap_records(self, seed: int) -> list[VersionedRecord]:
        """The SCRAM credentials with which the log of a new cluster begins."""
        records = []
        for name, password in self.users.items():
            for mechanism in SCRAM.values():
                key = chance.key(seed, f"salt/{mechanism.name}/{name}")
                salt = chance.random_uuid(key, 1).bytes
                salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
                keys = credential(mechanism, salted, salt, MIN_ITERATIONS)
                record = UserScramCredentialRecord(
                    name=name,
                    mechanism=mechanism.type,
                    salt=keys.salt,
                    stored_key=keys.stored_key,
                    server_key=keys.server_key,
                    iterations=keys.iterations,
                )
                records.append(VersionedRecord(record, 0))
        return records
