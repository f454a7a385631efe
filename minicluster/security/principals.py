"""Principals: who a connection belongs to.

A principal has a type and a name, ``User:alice``. One of the types is all that Kafka's own
builder makes; a builder of one's own may make others, and ACLs may name them.

Source:  KafkaPrincipal, SecurityUtils.parseKafkaPrincipal, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import ipaddress

from minicluster.values import Value

USER = "User"


class KafkaPrincipal(Value):
    """The owner of a connection."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """The principal of a text like ``User:alice``.

        Only the first colon divides: names may hold others.

        Errors:  ValueError without a colon.
        """
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(f"a principal is TYPE:NAME, as User:alice; {text!r} has no colon")
        return cls(kind, name)


ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")
"""Whoever did not log in: PLAINTEXT, and TLS without a certificate."""

EVERYBODY = KafkaPrincipal(USER, "*")
"""As an ACL's principal: every principal, of every type."""


def principal_of(name: str) -> KafkaPrincipal:
    """The principal that a person names: ``alice`` is ``User:alice``."""
    return KafkaPrincipal.parse(name) if ":" in name else KafkaPrincipal(USER, name)


class Requester(Value):
    """Who asks for something, and from where: what an authorizer looks at."""

    principal: KafkaPrincipal = ANONYMOUS
    host: str = "127.0.0.1"
    """An address in the form that ACLs are compared with (`java_host`)."""
    is_token_authenticated: bool = False
    """Logged in with a delegation token, which may not make further tokens."""
    security_protocol: str = "PLAINTEXT"
    """Of the listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    session_ends_ms: int | None = None
    """When the session of its connection ends, by the cluster's clock; None: never."""


def java_host(address: str) -> str:
    """An address as Java's ``InetAddress.getHostAddress`` has it.

    ACLs are compared with this text. IPv6 is eight groups without zeros in front, never ``::``;
    an IPv4 address that is mapped into IPv6 is IPv4.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
