"""The listeners of a run on Apache Kafka's own nodes: who logs in there, and how.

The nodes of a run are one process and log in nowhere. Kafka's do, where a run has an authorizer or
listeners other than PLAINTEXT: by SASL PLAIN, on a listener that clients do not use and on the
controllers' own, as a super user whose password is made here. Certificates are of an authority that
is made here as well. Of the run's users the log has the credentials of SCRAM; the passwords of
PLAIN stand in no file of a run and have to be given.

Source:  KafkaConfig, JaasContext, KafkaConfig.validateValues, DefaultSslEngineFactory.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.security.authorizer import AUTHORIZER, SUPER_USERS
from minicluster.security.jaas import login_module
from minicluster.security.oauthbearer import NAME as OAUTHBEARER
from minicluster.security.plain import NAME as PLAIN
from minicluster.security.protocols import CONTROLLER_LISTENER, LISTENER, SecurityProtocol
from minicluster.security.scram import MECHANISMS as SCRAM
from minicluster.values import dataclass

if TYPE_CHECKING:
    from minicluster.actors.security.authority import CertificateFiles

NODES_LISTENER = "NODES"
NODES_USER = "minicluster-nodes"
TLS_FOLDER = "tls"
MECHANISMS_CONFIG = "sasl.enabled.mechanisms"
_INTER_BROKER_LISTENER = "inter.broker.listener.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSecurity:
    """The listeners of the nodes, and the users of a run.

    Shapes:  brokers: the listeners that clients use, in their order; controllers: the protocol of
             theirs; users: the passwords of PLAIN by name; settings: those of the run.
    """

    brokers: Mapping[str, SecurityProtocol]
    controllers: SecurityProtocol
    users: Mapping[str, str]
    settings: Mapping[str, str]
    password: str = field(default_factory=secrets.token_urlsafe, repr=False)

    @property
    def is_secured(self) -> bool:
        """The nodes log in to each other."""
        plain = SecurityProtocol.PLAINTEXT
        protocols = {*self.brokers.values(), self.controllers}
        return protocols != {plain} or bool(self.settings.get(AUTHORIZER))

    @property
    def has_tls(self) -> bool:
        """Some listener has a certificate."""
        return any(protocol.has_tls for protocol in self.protocols().values())

    def broker_listeners(self) -> tuple[str, ...]:
        """The listeners of each broker, the nodes' own last."""
        return (*self.brokers, NODES_LISTENER) if self.is_secured else tuple(self.brokers)

    def protocols(self) -> dict[str, SecurityProtocol]:
        """The protocol of each listener."""
        of_controllers = self.controllers
        if self.is_secured and not of_controllers.has_sasl:
            of_controllers = SecurityProtocol.SASL_PLAINTEXT
        protocols = {**self.brokers, CONTROLLER_LISTENER: of_controllers}
        if self.is_secured:
            protocols[NODES_LISTENER] = SecurityProtocol.SASL_PLAINTEXT
        return protocols

    def note(self) -> str | None:
        """What clients miss on these nodes."""
        if self.users or PLAIN not in set().union(*map(self._offered, self._with_sasl())):
            return None
        return (
            "PLAIN is not offered: a run folder has no passwords; --sasl USER:PASSWORD names them"
        )

    def properties(self, place: Path) -> dict[str, str]:
        """What each node's file says of its listeners.

        Shapes:  place: the folder of all nodes.
        """
        protocols = self.protocols().items()
        values = {
            "listener.security.protocol.map": ",".join(f"{name}:{of}" for name, of in protocols)
        }
        if not self.is_secured:
            if LISTENER not in self.brokers:
                first = next(iter(self.brokers))
                values[_INTER_BROKER_LISTENER] = self.settings.get(_INTER_BROKER_LISTENER, first)
            return values
        values |= {
            _INTER_BROKER_LISTENER: NODES_LISTENER,
            "sasl.mechanism.inter.broker.protocol": PLAIN,
            "sasl.mechanism.controller.protocol": PLAIN,
        }
        if AUTHORIZER in self.settings:
            others = self.settings.get(SUPER_USERS)
            values[SUPER_USERS] = ";".join(filter(None, (others, f"User:{NODES_USER}")))
        of_users = {f"user_{name}": password for name, password in self.users.items()}
        of_nodes = {"username": NODES_USER, "password": self.password}
        of_nodes[f"user_{NODES_USER}"] = self.password
        values |= _logins(NODES_LISTENER, {PLAIN: of_nodes})
        values |= _logins(CONTROLLER_LISTENER, {PLAIN: of_nodes | of_users})
        options = {PLAIN: of_users, OAUTHBEARER: {_SUBJECT: NODES_USER}}
        for name in self._with_sasl():
            offered = [one for one in self._offered(name) if one != PLAIN or self.users]
            values |= _logins(name, {one: options.get(one, {}) for one in offered})
        if self.has_tls:
            tls = place / TLS_FOLDER
            values |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(tls / f"{NODES_USER}.chain.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(tls / "ca.pem"),
            }
        return values

    def write_certificates(self, folder: Path) -> CertificateFiles:
        """Write the nodes' certificate, and one of each user for clients."""
        from minicluster.actors.security.authority import NAMES, Authority

        authority = Authority()
        for user in self.users or ("client",):
            authority.write(folder, user)
        return authority.write(folder, NODES_USER, NAMES)

    def _with_sasl(self) -> list[str]:
        return [name for name, protocol in self.brokers.items() if protocol.has_sasl]

    def _offered(self, listener: str) -> list[str]:
        """The mechanisms that a listener offers in the run."""
        everything = ",".join((PLAIN, *SCRAM, OAUTHBEARER))
        of_all = self.settings.get(MECHANISMS_CONFIG, everything)
        own = self.settings.get(_of(listener, MECHANISMS_CONFIG), of_all)
        return [mechanism.strip() for mechanism in own.split(",")]


_SUBJECT = "unsecuredLoginStringClaim_sub"


def _logins(listener: str, modules: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The mechanisms of a listener, each with the options of its login module."""
    values = {_of(listener, MECHANISMS_CONFIG): ",".join(modules)}
    for mechanism, options in modules.items():
        name = _of(listener, f"{mechanism.lower()}.sasl.jaas.config")
        values[name] = login_module(mechanism, options)
    return values


def _of(listener: str, config: str) -> str:
    return f"listener.name.{listener.lower()}.{config}"
