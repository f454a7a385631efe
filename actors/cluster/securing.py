"""The security of a cluster's listeners: its certificate, who may log in and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from minicluster.actors.listeners.security import ListenerSecurity, SaslListener
from minicluster.actors.security.server_tls import ServerTls
from minicluster.configs.views import broker_default
from minicluster.errors import UserError
from minicluster.security.accounts import MetadataAccounts
from minicluster.security.oauthbearer import NAME as OAUTHBEARER
from minicluster.security.plain import NAME as PLAIN
from minicluster.security.protocols import SecurityProtocol
from minicluster.security.sasl import SaslSettings
from minicluster.security.scram import MECHANISMS as SCRAM
from minicluster.security.ssl_principals import SslPrincipalMapper

if TYPE_CHECKING:
    from minicluster.actors.cluster.cluster import Cluster

FAILED_LOGIN_DELAY = "connection.failed.authentication.delay.ms"
MAX_REAUTH = "connections.max.reauth.ms"
RECEIVE_SIZE = "sasl.server.max.receive.size"
_MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER)


def listener_security(
    cluster: Cluster,
    api_versions: Callable[[int, Any, int], Any],
    name: str,
    protocol: SecurityProtocol,
) -> ListenerSecurity:
    """The security of a listener.

    Arguments: api_versions: a node's response to a valid ApiVersions and its version, before the
            login.
    """
    configs = ListenerConfigs(name, cluster.config.static)
    tls = sasl = None
    if protocol.has_tls:
        made_up = {cluster.plan.host(node_id) for node_id in cluster.node_ids}
        names = {cluster.listen_host, "localhost", "127.0.0.1", *made_up}
        client_auth = configs.text("ssl.client.auth", "none")
        tls = ServerTls(
            lambda has_expired: cluster.authority().server_context(
                sorted(names), client_auth=client_auth, has_expired=has_expired
            ),
            lambda: cluster.certificates_have_expired,
        )
    if protocol.has_sasl:
        mechanisms = mechanisms_of(configs)
        sasl = SaslListener(
            settings=SaslSettings(
                mechanisms=mechanisms,
                max_reauth_ms={
                    mechanism: int(configs.of_mechanism(mechanism, MAX_REAUTH, "0"))
                    for mechanism in mechanisms
                },
                receive_bytes_max=int(configs.text(RECEIVE_SIZE)),
                plain_passwords=cluster.security.users,
            ),
            accounts=partial(_accounts, cluster),
            api_versions=api_versions,
            seed=cluster.seed,
            rules=cluster.rules,
            faults=cluster.faults,
            on_hit=cluster.recorder.fault_hit,
        )
    return ListenerSecurity(
        protocol=protocol,
        tls=tls,
        sasl=sasl,
        principals=SslPrincipalMapper(configs.text("ssl.principal.mapping.rules", "DEFAULT")),
        failed_login_delay_ms=int(configs.text(FAILED_LOGIN_DELAY)),
    )


class ListenerConfigs:
    """The configs of a listener: its own, then those of all, then Kafka's default."""

    def __init__(self, name: str, static: Mapping[str, str]) -> None:
        self._own, self._static = f"listener.name.{name.lower()}.", static

    def text(self, config: str, default: str | None = None) -> str:
        """A config's value."""
        value = self._static.get(self._own + config, self._static.get(config, default))
        return broker_default(config) if value is None else value

    def of_mechanism(self, mechanism: str, config: str, default: str) -> str:
        """A config of one mechanism, which has its own name before it."""
        own = self._static.get(f"{self._own}{mechanism.lower()}.{config}")
        return self.text(config, default) if own is None else own


def mechanisms_of(configs: ListenerConfigs) -> tuple[str, ...]:
    """The mechanisms of a listener.

    Errors:  UserError for one that is not built.
    """
    given = configs.text("sasl.enabled.mechanisms", ",".join(_MECHANISMS))
    mechanisms = tuple(name.strip() for name in given.split(","))
    unknown = [name for name in mechanisms if name not in _MECHANISMS]
    if unknown:
        raise UserError(
            f"config: sasl.enabled.mechanisms: {unknown[0]!r} is not built; "
            f"there are {', '.join(_MECHANISMS)}"
        )
    return mechanisms


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
