"""Listeners: their names, and how their clients are protected (Kafka's security protocols)."""

from __future__ import annotations

from enum import StrEnum

LISTENER = "PLAINTEXT"
"""Of brokers, where a cluster names no other."""
CONTROLLER_LISTENER = "CONTROLLER"


class SecurityProtocol(StrEnum):
    """Kafka's names of them."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @classmethod
    def of(cls, id: int) -> SecurityProtocol:
        """The protocol of a number in a registration."""
        return tuple(cls)[id]

    @property
    def id(self) -> int:
        """The number of it in the registration of a node."""
        return tuple(SecurityProtocol).index(self)

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
