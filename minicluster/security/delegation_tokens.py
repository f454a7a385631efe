"""Delegation tokens: what their holder proves, and who may ask for them.

The secret of a token is an HMAC of its id under delegation.token.secret.key, which all nodes share;
so no record holds it. In base64 it is the password by which the holder logs in.

Source:  KIP-48, KIP-373; DelegationTokenManager.createHmac, KafkaApis.allowTokenRequests.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import Any

SECRET_KEY = "delegation.token.secret.key"
MAX_LIFETIME_MS = "delegation.token.max.lifetime.ms"
EXPIRY_TIME_MS = "delegation.token.expiry.time.ms"


def secret_key_of(static: Mapping[str, Any]) -> bytes | None:
    """The key of a node's configs; None where delegation tokens are not enabled."""
    return str(static.get(SECRET_KEY) or "").encode() or None


def token_hmac(secret_key: bytes, token_id: str) -> bytes:
    """What a token's owner gets, and shows to renew or expire it."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def password(token: bytes) -> str:
    """The password of a token's holder, from its HMAC."""
    return base64.b64encode(token).decode()
