"""Secrets in messages, and messages without them: a run's folder is shown to others.

By the HMAC of a delegation token, a salted password or the bytes of a login somebody could log in.
An envelope has the bytes of another request, which may be one of these.
"""

from __future__ import annotations

from typing import Any

from minicluster.planting import Plantable, step
from minicluster.values import replace

SECRET_FIELDS = frozenset(
    {"hmac", "salted_password", "auth_bytes", "request_data", "response_data"}
)
SECRET_APIS = frozenset(
    {
        "SaslAuthenticate",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
        "AlterUserScramCredentials",
        "Envelope",
    }
)
"""The APIs whose requests or responses have such fields."""


@step
def without_secrets(recorder: Plantable, message: Any) -> Any:
    """A request or a response, its secrets empty."""
    return _hidden(message)


def _hidden(part: Any) -> Any:
    values: dict[str, Any] = {}
    for spec in part.schema:
        value = getattr(part, spec.name)
        if spec.name in SECRET_FIELDS:
            values[spec.name] = b""
        elif isinstance(value, tuple) and spec.struct is not None:
            values[spec.name] = tuple(map(_hidden, value))
    return replace(part, **values)
