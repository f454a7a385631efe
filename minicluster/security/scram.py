"""SCRAM-SHA-256 and -512: a client proves that it knows a password without sending it (RFC 5802).

    client   n,,n=alice,r=CLIENT-NONCE
    server   r=CLIENT-NONCE SERVER-NONCE,s=SALT,i=4096
    client   c=biws,r=…,p=PROOF
    server   v=SERVER-SIGNATURE

Kafka is laxer than the RFC (any channel binding that the proof covers, extensions, a mandatory one
among them) and stricter (no ``y`` flag, names and nonces of ASCII). The holder of a delegation
token logs in the same way with ``tokenauth=true`` in its first message: its id is the user, its
HMAC the password, and the owner is who has logged in.

Source:  KIP-84, KIP-48; ScramSaslServer, ScramMessages, ScramFormatter.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Protocol

from minicluster.java_order import hash_map_order, string_hash
from minicluster.metadata.image.security import ScramCredential
from minicluster.rules import Rules
from minicluster.security.mechanism import LoggedIn, NoResponse, SaslFailure
from minicluster.values import Value

MIN_ITERATIONS, MAX_ITERATIONS = 4_096, 16_384


class ScramMechanism(Value):
    """One of the two.

    Shapes:  type: the number in records and requests; hash: its name in hashlib.
    """

    name: str
    type: int
    hash: str


SCRAM_SHA_256 = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512 = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS = {mechanism.name: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)}


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """The salted password: a client sends it to set its own, and all keys are made of it."""
    return hashlib.pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)


def credential(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The keys by which a server verifies a password, without knowing it (RFC 5802, 3)."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(mechanism.hash, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", mechanism.hash),
        iterations=iterations,
    )


class Account(Value, kw_only=True):
    """Somebody who may log in: for a token its owner, and when it ends."""

    credential: ScramCredential
    user: str
    expires_at_ms: int | None = None


class Accounts(Protocol):
    """Whom a SCRAM mechanism knows."""

    def user(self, mechanism: ScramMechanism, name: str) -> Account | None:
        """The account of a user with a credential of this mechanism."""
        ...

    def token(self, mechanism: ScramMechanism, token_id: str) -> Account | None:
        """The account of a delegation token."""
        ...


_TEXT = r"[\x01-\x2b\x2d-\x7f]+"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_CHAR = "[a-zA-Z0-9/+]"
_BASE64 = f"(?:{_CHAR}{{4}})*(?:{_CHAR}{{3}}=|{_CHAR}{{2}}==)?"
_EXTENSIONS = f"(?:,[A-Za-z]+={_TEXT})*"
_FIRST = re.compile(
    f"n,(?:a=(?P<authorization_id>{_NAME}))?,(?:m={_TEXT},)?"
    f"n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS})"
)
_FINAL = re.compile(
    f"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS},p=(?P<proof>{_BASE64})"
)
_DIFFERENT_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class _Challenge(Value, kw_only=True):
    """The server's first message, and the credential by which the proof will be verified."""

    account: Account
    is_token: bool
    client_first_bare: str
    server_first: str
    nonce: str


class Scram:
    """One exchange: two tokens of the client, two of the server."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        accounts: Accounts,
        new_nonce: Callable[[], str],
        rules: Rules,
    ) -> None:
        self.logged_in: LoggedIn | None = None
        self._mechanism = mechanism
        self._accounts = accounts
        self._new_nonce = new_nonce
        self._rules = rules
        self._challenge: _Challenge | None = None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """The server's next message.

        Errors:  SaslFailure, nearly always without a text: a client does not learn what is wrong.
                 NoResponse for a proof of another length, as shipped.
        """
        text = token.decode(errors="replace")
        if self._challenge is None:
            self._challenge = self._on_first(text)
            return self._challenge.server_first.encode()
        return self._on_final(text, self._challenge)

    def _on_first(self, text: str) -> _Challenge:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise SaslFailure
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        extensions = dict(
            extension.split("=", 1) for extension in match["extensions"].split(",")[1:]
        )
        is_token = extensions.get("tokenauth", "").lower() == "true"
        find = self._accounts.token if is_token else self._accounts.user
        account = find(self._mechanism, name)
        if account is None:
            raise SaslFailure
        if (match["authorization_id"] or name) != name:
            raise SaslFailure(_DIFFERENT_ID)
        known = account.credential
        if known.iterations < MIN_ITERATIONS:
            raise SaslFailure
        nonce = match["nonce"] + self._new_nonce()
        bare = [f"n={match['name']}", f"r={match['nonce']}"]
        bare += (f"{key}={extensions[key]}" for key in hash_map_order(extensions, string_hash))
        return _Challenge(
            account=account,
            is_token=is_token,
            client_first_bare=",".join(bare),
            server_first=f"r={nonce},s={_base64(known.salt)},i={known.iterations}",
            nonce=nonce,
        )

    def _on_final(self, text: str, challenge: _Challenge) -> bytes:
        match = _FINAL.fullmatch(text)
        if match is None or not match["nonce"].endswith(challenge.nonce):
            raise SaslFailure
        channel = _base64(base64.b64decode(match["channel"]))
        without_proof = f"c={channel},r={match['nonce']}"
        signed = ",".join((challenge.client_first_bare, challenge.server_first, without_proof))
        known, algorithm = challenge.account.credential, self._mechanism.hash
        signature = hmac.digest(known.stored_key, signed.encode(), algorithm)
        proof = base64.b64decode(match["proof"])
        if len(proof) != len(signature):
            raise NoResponse if self._rules.odd_scram_proof_has_no_response else SaslFailure
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
        stored_key = hashlib.new(algorithm, client_key).digest()
        if not hmac.compare_digest(stored_key, known.stored_key):
            raise SaslFailure
        self.logged_in = LoggedIn(
            user=challenge.account.user,
            expires_at_ms=challenge.account.expires_at_ms,
            is_token=challenge.is_token,
        )
        server_signature = hmac.digest(known.server_key, signed.encode(), algorithm)
        return f"v={_base64(server_signature)}".encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
