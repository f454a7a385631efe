"""Who may log in by SCRAM on a node: users and delegation tokens of its metadata.

Source:  CredentialProvider, ScramServerCallbackHandler, DelegationTokenPublisher.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import field

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.security.delegation_tokens import password, token_hmac
from minicluster.security.principals import KafkaPrincipal
from minicluster.security.scram import (
    MIN_ITERATIONS,
    Account,
    ScramMechanism,
    credential,
    salted_password,
)
from minicluster.values import dataclass


@dataclass(frozen=True, slots=True)
class MetadataAccounts:
    """The accounts of a node, as its image has them at each login.

    Shapes:  image: the node's image of now. secret_key: of delegation tokens; None knows none.
    """

    image: Callable[[], MetadataImage]
    secret_key: bytes | None = field(default=None, repr=False)

    def user(self, mechanism: ScramMechanism, name: str) -> Account | None:
        """The account of a user with a credential of this mechanism."""
        known = self.image().scram.get((mechanism.type, name))
        return None if known is None else Account(credential=known, user=name)

    def token(self, mechanism: ScramMechanism, token_id: str) -> Account | None:
        """The account of a delegation token, until it is removed.

        One that has expired and is not yet swept still logs in, for a session without length.
        """
        token = self.image().delegation_tokens.get(token_id)
        if token is None or self.secret_key is None:
            return None
        # Kafka draws the salt. This one is not a secret either, and the same in every run.
        salt = hashlib.sha256(f"{mechanism.name} {token_id}".encode()).digest()
        secret = password(token_hmac(self.secret_key, token_id))
        salted = salted_password(mechanism, secret, salt, MIN_ITERATIONS)
        return Account(
            credential=credential(mechanism, salted, salt, MIN_ITERATIONS),
            user=KafkaPrincipal.parse(token.owner).name,
            expires_at_ms=token.expiration_timestamp,
        )
