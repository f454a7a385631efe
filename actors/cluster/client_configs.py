"""The settings with which a client connects to a cluster, in the words of its library."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.errors import UserError, instead
from minicluster.security.oauthbearer import NAME as OAUTHBEARER
from minicluster.security.plain import NAME as PLAIN

if TYPE_CHECKING:
    from minicluster.actors.cluster.cluster import Cluster
    from minicluster.actors.cluster.running import RunningCluster
    from minicluster.actors.security.authority import CertificateFiles

_CLIENTS = ("aiokafka", "confluent-kafka", "java", "kafka-python")


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
