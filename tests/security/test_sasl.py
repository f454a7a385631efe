"""Logins step by step, as one node of Apache Kafka 4.3.0 took them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
from typing import Any

import pytest

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.security import DelegationToken
from minicluster.protocol import decode, encode
from minicluster.protocol import messages as m
from minicluster.protocol.api_keys import APIS
from minicluster.rules import Rules
from minicluster.security.accounts import MetadataAccounts
from minicluster.security.delegation_tokens import password, token_hmac
from minicluster.security.mechanism import NoResponse, SaslFailure
from minicluster.security.sasl import SaslAuthenticator, SaslContext, SaslSettings
from minicluster.security.scram import (
    MECHANISMS,
    SCRAM_SHA_256,
    Scram,
    ScramMechanism,
    credential,
    salted_password,
)
from minicluster.values import replace
from tests.security.recorded import DATA

SHIPPED = Rules.KAFKA_4_3.as_shipped()
MAX_REAUTH_MS = {
    "SASL_PLAINTEXT": {},
    "REAUTH": {"PLAIN": 1_500, "SCRAM-SHA-256": 1_500},
    "LONG": dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), 3_600_000),
}
TOKEN_ID, SECRET_KEY = "token-1", b"a key of all nodes"
_BY_NAME = {api.name: api for api in APIS.values()}


def _exchanges() -> list[Any]:
    exchanges = []
    for path in sorted((DATA / "sasl-exchanges").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            header, *recorded = [json.loads(line) for line in lines]
        for number, exchange in enumerate(recorded):
            if exchange["listener"] in MAX_REAUTH_MS and not exchange.get("tls"):
                name = exchange.get("scenario") or f"{path.name[:-9]}-{number}"
                exchanges.append(pytest.param(header, exchange, id=name))
    return exchanges


@pytest.mark.parametrize(("header", "exchange"), _exchanges())
def test_kafkas_logins(header: dict[str, Any], exchange: dict[str, Any]) -> None:
    """Each frame of a login has Kafka's answer, and the connection ends where Kafka ends it."""
    player = Player(header, exchange["listener"])
    for number, step in enumerate(exchange["steps"]):
        player.play(step, f"step {number}: {str(step)[:300]}")
    assert player.closed == (exchange["ends"] == "closed")


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, SHIPPED], ids=["fixed", "as shipped"])
def test_a_proof_of_another_length_has_a_response(rules: Rules) -> None:
    """As shipped, the connection ends without one, over an exception that nobody expects."""
    known = accounts({"scram": {"users": {"alice": "SCRAM-SHA-256"}}}, 0)
    exchange = Scram(SCRAM_SHA_256, known, lambda: "server", rules)
    exchange.evaluate(b"n,,n=alice,r=client", 0)
    with pytest.raises(NoResponse if rules is SHIPPED else SaslFailure):
        exchange.evaluate(b"c=biws,r=clientserver,p=AAAA", 0)


class Player:
    """One connection: it plays the client's steps, with what Kafka drew by chance filled in."""

    def __init__(self, header: dict[str, Any], listener: str) -> None:
        self.closed = False
        self._now_ms = 1_700_000_000_000
        self._texts = {
            "<token-id>": TOKEN_ID,
            "<hmac>": password(token_hmac(SECRET_KEY, TOKEN_ID)),
            "<token-salt>": "",
        }
        self._bare = self._first = ""
        settings = SaslSettings(
            mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
            max_reauth_ms=MAX_REAUTH_MS[listener],
            plain_passwords={name: f"{name}-secret" for name in ("admin", "alice", "bob", "erin")},
        )
        self._login = SaslAuthenticator(
            SaslContext(
                settings=settings,
                accounts=accounts(header, self._now_ms + 86_400_000),
                new_nonce=lambda: "server-nonce",
                api_versions=_api_versions,
                rules=SHIPPED,
            )
        )

    def play(self, step: dict[str, Any], place: str) -> None:
        """One step of the client, and what must follow."""
        if "wait_ms" in step:
            self._now_ms += step["wait_ms"]
            return
        frame = self._frame(step)
        if frame is None or self._is_for_the_broker(frame, step, place):
            self.closed = self.closed or step.get("closed", False)
            return
        outcome = self._login.on_frame(frame, self._now_ms)
        assert outcome.closes == step.get("closed", False), place
        self.closed = outcome.closes
        self._compare(outcome.response, step, place)

    def _is_for_the_broker(self, frame: bytes, step: dict[str, Any], place: str) -> bool:
        """Whether the login is complete, and this no beginning of another one."""
        if not self._login.is_complete:
            return False
        key = int.from_bytes(frame[:2], "big")
        if self._login.begins_again(key, self._now_ms):
            return False
        assert self._login.has_expired(self._now_ms) == step.get("closed", False), place
        answer = step["answer"]
        if (
            answer
            and answer.get("api") == "CreateDelegationToken"
            and answer["response"].get("tokenRequesterPrincipalName")
        ):
            assert answer["response"]["principalName"] == self._login.principal.name, place
        return True

    def _frame(self, step: dict[str, Any]) -> bytes | None:
        if "send_raw" in step:
            raw = bytes.fromhex(step["send_raw"]) if _is_hex(step["send_raw"]) else b""
            size = int.from_bytes(raw[:4], "big", signed=True)
            return raw[4:] if 0 <= size == len(raw) - 4 else None
        for text in (step.get("send_token"), step.get("request", {}).get("token")):
            if text is not None:
                token = self._token(text, step)
        if "bytes" in step:
            return bytes.fromhex(step["bytes"])[4:]
        if "send_token" in step:
            return token
        if step["send"] != "SaslAuthenticate":
            return None
        request = m.SaslAuthenticateRequest(auth_bytes=self._token(step["request"]["token"], step))
        api = _BY_NAME["SaslAuthenticate"]
        header = m.RequestHeader(
            request_api_key=api.key,
            request_api_version=step["version"],
            correlation_id=step["correlation"],
            client_id="client",
        )
        version = step["version"]
        return encode(header, api.request_header_version(version)) + encode(request, version)

    def _token(self, text: str, step: dict[str, Any]) -> bytes:
        for name, value in self._texts.items():
            text = text.replace(name, value)
        text = text.replace("<server-nonce>", "server-nonce")
        text = text.replace(" and 600000 times x", "x" * 600_000)
        if text.startswith(("n,", "y,", "p=")):
            self._bare = ",".join(part for part in text.split(",")[2:] if not part.startswith("m="))
        if "<proof>" in text:
            text = text.replace("<proof>", self._proof(text, step["proof_of"]))
        return text.encode()

    def _proof(self, text: str, of: dict[str, Any]) -> str:
        mechanism = MECHANISMS[of["mechanism"]]
        password = self._texts.get(of["password"], of["password"])
        fields = dict(part.split("=", 1) for part in self._first.split(","))
        salt = base64.b64decode(fields["s"])
        salted = salted_password(mechanism, password, salt, of.get("iterations", int(fields["i"])))
        client_key = hmac.digest(salted, b"Client Key", mechanism.hash)
        stored_key = hashlib.new(mechanism.hash, client_key).digest()
        signed = ",".join([self._bare, self._first, ",".join(text.split(",")[:2])])
        signature = hmac.digest(stored_key, signed.encode(), mechanism.hash)
        self._server_signature = hmac.digest(
            hmac.digest(salted, b"Server Key", mechanism.hash), signed.encode(), mechanism.hash
        )
        return _text(bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))

    def _compare(self, response: bytes | None, step: dict[str, Any], place: str) -> None:
        answer = step["answer"]
        if answer is None:
            assert response is None, place
            return
        assert response is not None, place
        if "token" in answer:
            self._compare_tokens(response.decode(), answer["token"], place)
            return
        assert int.from_bytes(response[:4], "big") == answer["correlation"], place
        if "bytes" in answer:
            assert response.hex() == answer["bytes"], place
        elif answer["api"] == "SaslAuthenticate":
            version = answer["version"]
            skipped = 5 if version > 1 else 4
            decoded = decode(m.SaslAuthenticateResponse, response[skipped:], version)
            assert decoded.error_code == answer["response"]["errorCode"], place
            self._compare_tokens(
                decoded.auth_bytes.decode(), answer["response"]["authBytes"], place
            )

    def _compare_tokens(self, ours: str, kafkas: str, place: str) -> None:
        if ours.startswith("r="):
            self._first = ours
        if kafkas.startswith("v="):
            assert ours == f"v={_text(self._server_signature)}", place
            return
        expected = kafkas.replace("<server-nonce>", "server-nonce")
        assert ours.split("s=")[0] == expected.split("s=")[0], place


def accounts(header: dict[str, Any], token_expires_at_ms: int) -> MetadataAccounts:
    """The users that the recorded node was formatted with, and one delegation token of alice."""
    image = MetadataImage()
    for name, mechanism in header["scram"]["users"].items():
        known = _credential(MECHANISMS[mechanism], f"{name}-secret")
        users = image.scram.put((MECHANISMS[mechanism].type, name), known)
        image = replace(image, scram=users)
    token = DelegationToken(
        owner="User:alice",
        requester="User:alice",
        renewers=(),
        issue_timestamp=0,
        max_timestamp=token_expires_at_ms,
        expiration_timestamp=token_expires_at_ms,
    )
    tokens = image.delegation_tokens.put(TOKEN_ID, token)
    image = replace(image, delegation_tokens=tokens)
    return MetadataAccounts(lambda: image, SECRET_KEY)


def _credential(mechanism: ScramMechanism, password: str) -> Any:
    salt = b"sixteen bytes ok"
    return credential(mechanism, salted_password(mechanism, password, salt, 4_096), salt, 4_096)


def _api_versions(request: m.ApiVersionsRequest, version: int) -> m.ApiVersionsResponse:
    is_odd = version >= 3 and not request.client_software_name.replace("-", "").isalnum()
    return m.ApiVersionsResponse(error_code=42 if is_odd else 0)


def _is_hex(text: str) -> bool:
    return all(char in "0123456789abcdef" for char in text)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
