"""A principal as the forwarding of requests carries it (KIP-590).

DefaultPrincipalData: Versions: 0, all flexible; Kafka 3.9 has 0, Kafka 4.3 has 0.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(kind="data", versions="0", flexible="0+")
class DefaultPrincipalData(s.Message):
    """The type and the name of a principal."""

    type: str = s.string("0+", default="")
    name: str = s.string("0+", default="")
    token_authenticated: bool = s.boolean("0+", default=False)
