"""How the clients of a cluster's listeners prove who they are: by TLS, by SASL, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import field

from minicluster.actors.runtime import chance
from minicluster.actors.security.server_tls import ServerTls
from minicluster.faults import Faults
from minicluster.rules import Rules
from minicluster.security.protocols import SecurityProtocol
from minicluster.security.sasl import SaslAuthenticator, SaslContext, SaslSettings
from minicluster.security.scram import Accounts
from minicluster.security.ssl_principals import SslPrincipalMapper
from minicluster.values import Value

_NO_LIMIT = 2**31 - 1


class SaslListener(Value, kw_only=True):
    """Logins of a listener's clients.

    Shapes:  accounts: of a node, by its own image; api_versions: a node's response to a valid
             ApiVersions and its version; on_hit: a planted fault has acted at a node.
    """

    settings: SaslSettings
    accounts: Callable[[int], Accounts]
    api_versions: Callable[[int, Any, int], Any]
    seed: int
    rules: Rules
    faults: Faults = Faults.NONE
    on_hit: Callable[[str, int], None] = lambda fault, node: None

    def login(self, node_id: int, connection: int) -> SaslAuthenticator:
        """The logins of one connection to a node. Its nonces are drawn from the cluster's seed."""
        key = chance.key(self.seed, f"login/{node_id}/{connection}")
        drawn = iter(range(1, 1 << 62))
        return SaslAuthenticator(
            SaslContext(
                settings=self.settings,
                accounts=self.accounts(node_id),
                new_nonce=lambda: chance.random_uuid(key, next(drawn) * 2).hex,
                api_versions=lambda request, version: self.api_versions(node_id, request, version),
                rules=self.rules,
                faults=self.faults,
            )
        )


class ListenerSecurity(Value, kw_only=True):
    """The security of a listener. A ``tls`` of None is none.

    Shapes:  failed_login_delay_ms: until a failed login is answered, so that whoever tries
             passwords does not try many (KAFKA-5854).
    """

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: ServerTls | None = None
    sasl: SaslListener | None = None
    principals: SslPrincipalMapper = field(default_factory=SslPrincipalMapper)
    failed_login_delay_ms: int = 0

    def login(self, node_id: int, connection: int) -> SaslAuthenticator | None:
        """The logins of a new connection; None where nobody logs in."""
        return None if self.sasl is None else self.sasl.login(node_id, connection)

    @property
    def login_bytes_max(self) -> int:
        """The size of a frame before the login is complete; of any, where nobody logs in."""
        return _NO_LIMIT if self.sasl is None else self.sasl.settings.receive_bytes_max

    def on_hit(self, fault: str, node_id: int) -> None:
        """A planted fault has acted in a login."""
        if self.sasl is not None:
            self.sasl.on_hit(fault, node_id)
