"""The security of a cluster's listeners: its certificate, who may log in and how."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from minicluster.actors.listeners.security import ListenerSecurity, SaslListener
from minicluster.configs.views import broker_default
from minicluster.errors import UserError
from minicluster.security.accounts import MetadataAccounts
from minicluster.security.oauthbearer import NAME as OAUTHBEARER
from minicluster.security.plain import NAME as PLAIN
from minicluster.security.sasl import SaslSettings
from minicluster.security.scram import MECHANISMS as SCRAM
from minicluster.security.ssl_principals import SslPrincipalMapper

if TYPE_CHECKING:
    from minicluster.actors.cluster.cluster import Cluster

FAILED_LOGIN_DELAY = "connection.failed.authentication.delay.ms"
RECEIVE_SIZE = "sasl.server.max.receive.size"
_MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER)


def listener_security(
    cluster: Cluster, api_versions: Callable[[int, Any, int], Any]
) -> ListenerSecurity:
    """The security of a cluster's listeners.

    Arguments: api_versions: a node's response to a valid ApiVersions and its version, before the
            login.
    """
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
                receive_bytes_max=int(static.get(RECEIVE_SIZE, broker_default(RECEIVE_SIZE))),
                plain_passwords=cluster.security.users,
            ),
            accounts=partial(_accounts, cluster),
            api_versions=api_versions,
            seed=cluster.seed,
            rules=cluster.rules,
        )
    rules = static.get("ssl.principal.mapping.rules", "DEFAULT")
    delay_ms = int(static.get(FAILED_LOGIN_DELAY, broker_default(FAILED_LOGIN_DELAY)))
    return ListenerSecurity(
        protocol=protocol,
        tls=tls,
        sasl=sasl,
        principals=SslPrincipalMapper(rules),
        failed_login_delay_ms=delay_ms,
    )


def _accounts(cluster: Cluster, node_id: int) -> MetadataAccounts:
    """Whom a node knows, at each login by the image that it has published then."""
    secret = cluster.config.static.get("delegation.token.secret.key")
    return MetadataAccounts(
        partial(_image, cluster, node_id), None if secret is None else secret.encode()
    )


def _image(cluster: Cluster, node_id: int) -> Any:
    process = cluster.processes[node_id]
    if process.broker is not None:
        return process.broker.apis.state.image
    assert process.controller is not None
    return process.controller.controller.committed_image
