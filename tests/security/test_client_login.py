"""The client's side of a login by PLAIN, at the server's side of this project."""

from __future__ import annotations

import pytest

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from minicluster.security.accounts import MetadataAccounts
from minicluster.security.client_login import ClientLogin, Credentials
from minicluster.security.mechanism import SaslFailure
from minicluster.security.sasl import SaslAuthenticator, SaslContext, SaslSettings


def server(*mechanisms: str) -> SaslAuthenticator:
    settings = SaslSettings(mechanisms=mechanisms, plain_passwords={"nodes": "secret"})
    return SaslAuthenticator(
        SaslContext(
            settings=settings,
            accounts=MetadataAccounts(MetadataImage, None),
            new_nonce=lambda: "nonce",
            api_versions=lambda request, version: m.ApiVersionsResponse(),
            rules=Rules.KAFKA_4_3,
        )
    )


def log_in(login: ClientLogin, at: SaslAuthenticator) -> None:
    while not login.is_complete:
        login.on_response(at.on_frame(login.frame(), 0).response or b"")


def test_a_node_logs_in() -> None:
    at = server("PLAIN")
    log_in(ClientLogin(Credentials("nodes", "secret")), at)
    assert at.is_complete and str(at.principal) == "User:nodes"


def test_a_wrong_password_is_the_server_s_reason() -> None:
    login = ClientLogin(Credentials("nodes", "wrong"))
    with pytest.raises(SaslFailure, match="Invalid username or password"):
        log_in(login, server("PLAIN"))


def test_a_listener_without_plain_says_so() -> None:
    login = ClientLogin(Credentials("nodes", "secret"))
    with pytest.raises(SaslFailure, match="SaslHandshake: UNSUPPORTED_SASL_MECHANISM"):
        log_in(login, server("SCRAM-SHA-256"))


def test_a_password_is_in_no_repr() -> None:
    assert "secret" not in repr(Credentials("nodes", "secret"))
