"""The security of a cluster, as its arguments say it.

``listeners`` names a protocol of Kafka's or several listeners, ``users`` who may log in,
``super_users`` turns the authorizer on. A user's password is known to PLAIN and, as records of the
metadata log, to both SCRAM mechanisms.

A listener that is not named as a protocol has one by ``listener.security.protocol.map``. What is
set for ``listener.name.NAME.…`` counts for that listener before what is set for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from minicluster.actors.runtime import chance
from minicluster.errors import UserError, instead
from minicluster.protocol.records import UserScramCredentialRecord, VersionedRecord
from minicluster.security.authorizer import AUTHORIZER, SUPER_USERS
from minicluster.security.client_login import Credentials
from minicluster.security.protocols import CONTROLLER_LISTENER, LISTENER, SecurityProtocol
from minicluster.security.scram import MECHANISMS as SCRAM
from minicluster.security.scram import MIN_ITERATIONS, credential, salted_password
from minicluster.values import dataclass

PROTOCOL_MAP = "listener.security.protocol.map"
_NAME = re.compile("[A-Za-z0-9_-]+")
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The arguments of a cluster, read.

    Shapes:  listeners: the protocol of each listener of brokers, in the order of the argument;
             users: passwords by name; super_users: principals such as User:admin.
    """

    listeners: Mapping[str, SecurityProtocol] = field(
        default_factory=lambda: {LISTENER: SecurityProtocol.PLAINTEXT}
    )
    controller_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    users: dict[str, str] = field(default_factory=dict, repr=False)
    super_users: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        listeners: object,
        users: Mapping[str, str] | None,
        super_users: Sequence[str],
        config: Mapping[str, Any],
    ) -> Security:
        """Read the arguments. Controllers have the protocol of the first listener, or their own.

        Errors:  UserError for an unknown protocol, for a name that is there twice, and for SASL
                 without users.
        """
        mapped = _protocols(str(config.get(PROTOCOL_MAP, "")))
        names = [listeners] if isinstance(listeners, str) else listeners
        if not isinstance(names, list | tuple):
            names = [LISTENER]
        if not names or len({str(name).lower() for name in names}) < len(names):
            raise UserError("listeners: name each listener once, such as ['PLAINTEXT', 'SASL_SSL']")
        protocols = {name: _protocol(name, mapped) for name in names}
        first = protocols[names[0]]
        controllers = mapped.get(CONTROLLER_LISTENER, first)
        for protocol in (*protocols.values(), controllers):
            if protocol.has_sasl and not users:
                raise UserError(
                    f'listeners: {protocol} needs users={{"alice": "secret"}} who log in'
                )
        super_names = (user if ":" in user else f"User:{user}" for user in super_users)
        return cls(
            listeners=protocols,
            controller_protocol=controllers,
            users=dict(users or {}),
            super_users=tuple(super_names),
        )

    def listener_for(
        self,
        listeners: Mapping[str, SecurityProtocol],
        user: str | None,
        wanted: str | None = None,
    ) -> str:
        """The listener of brokers to which a client connects.

        Shapes:  listeners: those that it reaches; wanted: the name of a listener, or a protocol;
                 None: the first on which the user can be who it is.
        Errors:  UserError where there is none.
        """
        if wanted is not None:
            for name, protocol in listeners.items():
                if wanted in (name, protocol):
                    return name
            known = [*listeners, *map(str, listeners.values())]
            raise UserError(f"client_config: no listener {wanted!r}; {instead(wanted, known)}")
        if user in self.users:
            fits = [name for name, protocol in listeners.items() if protocol.has_sasl]
        else:
            fits = [name for name, protocol in listeners.items() if not protocol.has_sasl]
            if user is not None:
                fits.sort(key=lambda name: not listeners[name].has_tls)
        return next(iter((*fits, *listeners)))

    def node_credentials(self, super_users: Sequence[str]) -> Credentials:
        """As whom nodes log in at nodes of another process: the first super user with a password,
        or the first user at all.
        """
        names = [name for name in self.users if f"User:{name}" in super_users]
        name = (names or list(self.users))[0]
        return Credentials(name, self.users[name])

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


def _protocols(text: str) -> dict[str, SecurityProtocol]:
    """listener.security.protocol.map.

    Errors:  UserError for an entry that is none.
    """
    entries = (entry.partition(":") for entry in filter(None, text.replace(" ", "").split(",")))
    return {name: _known(protocol, f"config: {PROTOCOL_MAP}") for name, _, protocol in entries}


def _protocol(listener: object, mapped: Mapping[str, SecurityProtocol]) -> SecurityProtocol:
    if isinstance(listener, str) and _NAME.fullmatch(listener) is None:
        raise UserError(f"listeners: {listener!r} is no name of a listener, such as EXTERNAL")
    if listener == CONTROLLER_LISTENER:
        raise UserError(f"listeners: {listener} is the controllers' own; name another")
    return mapped.get(str(listener)) or _known(str(listener), "listeners")


def _known(protocol: str, place: str) -> SecurityProtocol:
    known = [str(name) for name in SecurityProtocol]
    if protocol not in known:
        hint = f"; a name of your own has its protocol in config {PROTOCOL_MAP}"
        more = hint if place == "listeners" else ""
        raise UserError(f"{place}: unknown protocol {protocol!r}; {instead(protocol, known)}{more}")
    return SecurityProtocol(protocol)
