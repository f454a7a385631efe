"""A secured cluster: what its arguments mean, the security of its listeners, clients' settings.

``listeners`` names a protocol of Kafka's, ``users`` who may log in, ``super_users`` turns the
authorizer on. A user's password is known to PLAIN and, as records of the metadata log, to both
SCRAM mechanisms.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.actors.listeners.security import ListenerSecurity, SaslListener, SecurityProtocol
from minicluster.actors.runtime import chance
from minicluster.errors import UserError, instead
from minicluster.protocol.records import UserScramCredentialRecord, VersionedRecord
from minicluster.security.authorizer import AUTHORIZER, SUPER_USERS
from minicluster.security.oauthbearer import NAME as OAUTHBEARER
from minicluster.security.plain import NAME as PLAIN
from minicluster.security.sasl import SaslSettings
from minicluster.security.scram import MECHANISMS as SCRAM
from minicluster.security.scram import Account, ScramMechanism, credential, salted_password
from minicluster.security.ssl_principals import SslPrincipalMapper

if TYPE_CHECKING:
    from minicluster.actors.cluster.cluster import Cluster
    from minicluster.actors.cluster.running import RunningCluster
    from minicluster.actors.security.authority import Authority, CertificateFiles

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER)
_ITERATIONS = 4_096
_CLIENTS = ("aiokafka", "confluent-kafka", "java", "kafka-python")


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
                salted = salted_password(mechanism, password, salt, _ITERATIONS)
                keys = credential(mechanism, salted, salt, _ITERATIONS)
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


@dataclass(frozen=True, slots=True)
class _Accounts:
    """Whom a node knows now, by the image that it has published."""

    cluster: Cluster
    node_id: int

    def user(self, mechanism: ScramMechanism, name: str) -> Account | None:
        """The account of a user."""
        known = _image(self.cluster, self.node_id).scram.get((mechanism.type, name))
        return None if known is None else Account(credential=known, user=name)

    def token(self, mechanism: ScramMechanism, token_id: str) -> Account | None:
        """There are no delegation tokens."""
        return None


def listener_security(cluster: Cluster) -> ListenerSecurity:
    """The security of a cluster's listeners."""
    protocol, static = cluster.security.protocol, cluster.config.static
    tls = sasl = None
    if protocol.has_tls:
        names = {cluster.listen_host, "localhost", "127.0.0.1"}
        client_auth = static.get("ssl.client.auth", "none")
        tls = cluster.authority().server_context(sorted(names), client_auth=client_auth)
    if protocol.has_sasl:
        given = static.get("sasl.enabled.mechanisms", ",".join(_MECHANISMS))
        mechanisms = tuple(name.strip() for name in given.split(","))
        unknown = [name for name in mechanisms if name not in _MECHANISMS]
        if unknown:
            raise UserError(
                f"config: sasl.enabled.mechanisms: {unknown[0]!r} is not built; "
                f"there are {', '.join(_MECHANISMS)}"
            )
        max_reauth_ms = int(static.get("connections.max.reauth.ms", 0))
        sasl = SaslListener(
            settings=SaslSettings(
                mechanisms=mechanisms,
                max_reauth_ms=dict.fromkeys(mechanisms, max_reauth_ms),
                plain_passwords=cluster.security.users,
            ),
            accounts=partial(_Accounts, cluster),
            api_versions=partial(_api_versions, cluster),
            seed=cluster.seed,
            rules=cluster.rules,
        )
    rules = static.get("ssl.principal.mapping.rules", "DEFAULT")
    return ListenerSecurity(
        protocol=protocol, tls=tls, sasl=sasl, principals=SslPrincipalMapper(rules)
    )


def client_config(cluster: RunningCluster, user: str | None, client: str) -> dict[str, Any]:
    """The settings with which a client connects, in the words of its library.

    Errors:  UserError for an unknown library, and for a user who does not log in here.
    """
    if client not in _CLIENTS:
        raise UserError(f"client_config: unknown client {client!r}; {instead(client, _CLIENTS)}")
    security = cluster.security
    protocol = security.protocol
    if protocol.has_sasl and user not in security.users:
        known = ", ".join(security.users)
        raise UserError(f"client_config: no user {user!r} logs in here; users are {known}")
    servers = cluster.open_to_clients("client_config").bootstrap_servers
    of_user = None if protocol.has_sasl else user  # who is one by a certificate
    files = _files(cluster, of_user) if protocol.has_tls else None
    password = security.users.get(user or "", "")
    if client in ("aiokafka", "kafka-python"):
        return _of_python(cluster, client, servers, user, password, files)
    config: dict[str, Any] = {"bootstrap.servers": servers, "security.protocol": str(protocol)}
    if protocol.has_sasl:
        config["sasl.mechanism"] = _mechanism(cluster)
        if client == "java":
            module = "plain.Plain" if config["sasl.mechanism"] == PLAIN else "scram.Scram"
            config["sasl.jaas.config"] = (
                f"org.apache.kafka.common.security.{module}LoginModule required "
                f'username="{user}" password="{password}";'
            )
        else:
            config |= {"sasl.username": user, "sasl.password": password}
    if files is not None and client == "java":
        config |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(files.authority)}
        if files.chain is not None:
            config |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(files.chain)}
    elif files is not None:
        config["ssl.ca.location"] = str(files.authority)
        if files.certificate is not None:
            config["ssl.certificate.location"] = str(files.certificate)
            config["ssl.key.location"] = str(files.key)
    return config


def _of_python(
    cluster: Cluster,
    client: str,
    servers: str,
    user: str | None,
    password: str,
    files: CertificateFiles | None,
) -> dict[str, Any]:
    protocol = cluster.security.protocol
    config: dict[str, Any] = {"bootstrap_servers": servers, "security_protocol": str(protocol)}
    if protocol.has_sasl:
        config |= {
            "sasl_mechanism": _mechanism(cluster),
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
    if files is None:
        return config
    if client == "aiokafka":
        of_user = None if protocol.has_sasl else user
        return {**config, "ssl_context": cluster.authority().client_context(of_user)}
    config["ssl_cafile"] = str(files.authority)
    if files.certificate is not None:
        config |= {"ssl_certfile": str(files.certificate), "ssl_keyfile": str(files.key)}
    return config


def _mechanism(cluster: Cluster) -> str:
    """The mechanism of clients' settings: the first that all of them know a password for."""
    given = cluster.config.static.get("sasl.enabled.mechanisms", "SCRAM-SHA-256")
    return next(name.strip() for name in given.split(",") if name.strip() != OAUTHBEARER)


def _files(cluster: Cluster, user: str | None) -> CertificateFiles:
    """Certificates as files, which go with the cluster."""
    folder = tempfile.TemporaryDirectory(prefix="minicluster-tls-")
    cluster.rt.at_close.append(folder.cleanup)
    return cluster.authority().write(Path(folder.name), user)


def authority_of() -> Authority:
    """A new authority; its library is loaded where there is TLS alone."""
    from minicluster.actors.security.authority import Authority

    return Authority()


def _image(cluster: Cluster, node_id: int) -> Any:
    process = cluster.processes[node_id]
    if process.broker is not None:
        return process.broker.apis.state.image
    assert process.controller is not None
    return process.controller.controller.committed_image


def _api_versions(cluster: Cluster, node_id: int, request: Any, version: int) -> Any:
    """A node's response to ApiVersions, without its actor: Kafka's threads of I/O give it."""
    from minicluster.actors.cluster.listening import served_versions
    from minicluster.broker.requests.api_versions import api_versions

    process = cluster.processes[node_id]
    if process.broker is not None:
        state = process.broker.apis.state
    else:
        assert process.controller is not None
        state = process.controller.listener_state
    return api_versions(state, request, version, served_versions(cluster)[node_id])
