"""The settings with which a client connects to a cluster, in the words of its library."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from minicluster.actors.cluster.apps import program_protocols, program_servers, takes_programs
from minicluster.actors.cluster.securing import ListenerConfigs
from minicluster.errors import UserError, instead
from minicluster.log.text_files import properties_text
from minicluster.security.jaas import login
from minicluster.security.oauthbearer import NAME as OAUTHBEARER
from minicluster.security.protocols import SecurityProtocol
from minicluster.security.scram import SCRAM_SHA_256

if TYPE_CHECKING:
    from minicluster.actors.cluster.cluster import Cluster
    from minicluster.actors.cluster.running import RunningCluster
    from minicluster.actors.security.authority import CertificateFiles

_CLIENTS = ("aiokafka", "confluent-kafka", "java", "kafka-python")


def client_config(
    cluster: RunningCluster,
    user: str | None,
    client: str,
    wanted: str | None = None,
    folder: Path | None = None,
) -> dict[str, Any]:
    """The settings with which a client connects, in the words of its library.

    Shapes:  wanted: a listener, or its protocol; None: the first that fits the user. folder: for
             certificates; None: one that goes with the cluster.
    Errors:  UserError for an unknown library, and for a user who does not log in here.
    """
    if client not in _CLIENTS:
        raise UserError(f"client_config: unknown client {client!r}; {instead(client, _CLIENTS)}")
    security = cluster.security
    is_outside = cluster.listeners is not None or not takes_programs(cluster)
    protocols = security.listeners if is_outside else program_protocols(cluster)
    listener = security.listener_for(protocols, user, wanted)
    protocol = protocols[listener]
    if protocol.has_sasl and user not in security.users:
        known = ", ".join(security.users)
        raise UserError(f"client_config: no user {user!r} logs in here; users are {known}")
    if is_outside:
        servers = cluster.open_to_clients("client_config").bootstrap_servers(listener)
    else:
        servers = program_servers(cluster, listener)
    of_user = None if protocol.has_sasl else user  # who is one by a certificate
    files = None
    if protocol.has_tls:
        files = cluster.authority().write(folder or _folder(cluster), of_user)
    password = security.users.get(user or "", "")
    if client in ("aiokafka", "kafka-python"):
        return _of_python(cluster, client, listener, protocol, servers, user, password, files)
    config: dict[str, Any] = {"bootstrap.servers": servers, "security.protocol": str(protocol)}
    if protocol.has_sasl:
        config["sasl.mechanism"] = _mechanism(cluster, listener)
        if client == "java":
            config["sasl.jaas.config"] = login(config["sasl.mechanism"], user or "", password)
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
    listener: str,
    protocol: SecurityProtocol,
    servers: str,
    user: str | None,
    password: str,
    files: CertificateFiles | None,
) -> dict[str, Any]:
    config: dict[str, Any] = {"bootstrap_servers": servers, "security_protocol": str(protocol)}
    if protocol.has_sasl:
        config |= {
            "sasl_mechanism": _mechanism(cluster, listener),
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


def _mechanism(cluster: Cluster, listener: str) -> str:
    """The mechanism of clients' settings: the first with a password that the listener offers.

    Errors:  UserError where it offers tokens alone.
    """
    configs = ListenerConfigs(listener, cluster.config.static)
    offered = configs.text("sasl.enabled.mechanisms", SCRAM_SHA_256.name).split(",")
    for mechanism in offered:
        if mechanism.strip() != OAUTHBEARER:
            return mechanism.strip()
    raise UserError(f"client_config: {listener} offers {', '.join(offered)}, without passwords")


def _folder(cluster: Cluster) -> Path:
    """A folder that goes with the cluster."""
    folder = tempfile.TemporaryDirectory(prefix="minicluster-tls-")
    cluster.rt.at_close.append(folder.cleanup)
    return Path(folder.name)


def write_properties(cluster: RunningCluster, folder: Path) -> list[Path]:
    """Write what clients of a cluster with TLS need: certificates, a properties file of each user.

    Shapes:  without users ``client.properties``, with a certificate of that name.
    """
    written = []
    for user in cluster.security.users or ("client",):
        config = client_config(cluster, user, "java", folder=folder)
        path = folder / f"{quote(user, safe='')}.properties"
        path.touch(mode=0o600)
        lines = properties_text({name: str(value) for name, value in config.items()})
        path.write_text(lines, encoding="ascii")
        written.append(path)
    return written
