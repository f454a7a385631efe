"""JAAS configurations: as whom a program in Java logs in, and whom a listener of it lets in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from minicluster.security.oauthbearer import NAME as OAUTHBEARER
from minicluster.security.plain import NAME as PLAIN

_MODULES = {
    PLAIN: "plain.PlainLoginModule",
    OAUTHBEARER: "oauthbearer.OAuthBearerLoginModule",
}
_WORD = re.compile(r"[\w$-]+", re.ASCII)
_OF_SCRAM = "scram.ScramLoginModule"


def login_module(mechanism: str, options: Mapping[str, str]) -> str:
    """The value of ``sasl.jaas.config`` for a mechanism of Kafka's."""
    module = f"org.apache.kafka.common.security.{_MODULES.get(mechanism, _OF_SCRAM)}"
    given = (
        f"{name if _WORD.fullmatch(name) else _quoted(name)}={_quoted(value)}"
        for name, value in options.items()
    )
    return " ".join([module, "required", *given]) + ";"


def login(mechanism: str, user: str, password: str) -> str:
    """The configuration of one who logs in with a password."""
    return login_module(mechanism, {"username": user, "password": password})


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
