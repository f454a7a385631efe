"""No file of a run has a password, a key or a token in it; the metadata log has salted keys."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from minicluster import MiniCluster
from minicluster.protocol import messages as m
from minicluster.protocol.api_keys import APIS
from minicluster.security.delegation_tokens import SECRET_KEY
from minicluster.security.scram import SCRAM_SHA_256, salted_password
from minicluster.security.secret_fields import SECRET_APIS, SECRET_FIELDS

SALT = b"sixteen bytes ok"


def test_no_secret_is_in_the_folder_of_a_run(tmp_path: Path) -> None:
    """The password of a user, what it is changed to, the key of tokens, and a token."""
    config = {SECRET_KEY: "nobody-knows-this-key", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    users = {"alice": "alices-first-password"}
    shape = {"brokers": 1, "controllers": 1, "super_users": ["admin"], "config": config}
    with MiniCluster(**shape, users=users) as cluster:
        salted = salted_password(SCRAM_SHA_256, "alices-second-password", SALT, 4_096)
        kind = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
        changed = kind(
            name="alice", mechanism=1, iterations=4_096, salt=SALT, salted_password=salted
        )
        cluster.admin(m.AlterUserScramCredentialsRequest(upsertions=(changed,)))
        made = cluster.as_user("alice").admin(m.CreateDelegationTokenRequest())
        assert made.token_id
        with pytest.raises(Exception, match="AUTHORIZATION_FAILED"):
            cluster.as_user("alice").create_topic("orders")
        folder = cluster.save(tmp_path / "run")
    secrets = [
        *(text.encode() for text in (users["alice"], config[SECRET_KEY])),
        b"alices-second-password",
    ]
    for secret in (salted, made.hmac):
        secrets += [secret, base64.b64encode(secret), secret.hex().encode(), repr(secret).encode()]
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        if path.suffix == ".parquet":  # compressed
            content = repr(pq.read_table(path).to_pylist()).encode()
        assert not [secret for secret in secrets if secret in content], path


def test_the_apis_with_secrets_are_those_whose_messages_have_such_fields() -> None:
    def has_secret(message: Any) -> bool:
        return any(
            spec.name in SECRET_FIELDS or (spec.struct is not None and has_secret(spec.struct))
            for spec in message.schema
        )

    found = {
        api.name for api in APIS.values() if has_secret(api.request) or has_secret(api.response)
    }
    assert found == SECRET_APIS
