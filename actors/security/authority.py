"""An authority of the cluster's own: certificates for its nodes and for clients, made in memory.

The certificates are trustme's: a root that nobody else trusts, a certificate for each name. Their
keys leave memory only where a client needs files (`write`).
"""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import trustme
from cryptography.hazmat.primitives import serialization

from minicluster.values import Value

NAMES = ("localhost", "127.0.0.1", "::1")


class CertificateFiles(Value):
    """Where a client finds what it needs; its own certificate and key are None without one.

    Shapes:  chain: key (PKCS 8) and certificate in one file, as Java takes them.
    """

    authority: Path
    certificate: Path | None = None
    key: Path | None = None
    chain: Path | None = None


class Authority:
    """Signs certificates, and makes the contexts of servers and clients."""

    def __init__(self) -> None:
        self._root = trustme.CA(organization_name="minicluster", organization_unit_name="tests")

    def server_context(
        self,
        names: Sequence[str] = NAMES,
        *,
        client_auth: str = "none",
        has_expired: bool = False,
    ) -> ssl.SSLContext:
        """A server's context.

        Shapes:  names: what its certificate is for; client_auth: ssl.client.auth, none, requested
                 or required; has_expired: its certificate ended in 2001.
        """
        ends = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC) if has_expired else None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.options |= ssl.OP_NO_RENEGOTIATION
        self._root.issue_cert(*names, not_after=ends).configure_cert(context)
        if client_auth != "none":
            self._root.configure_trust(context)
        context.verify_mode = {
            "none": ssl.CERT_NONE,
            "requested": ssl.CERT_OPTIONAL,
            "required": ssl.CERT_REQUIRED,
        }[client_auth]
        return context

    def client_context(self, common_name: str | None = None) -> ssl.SSLContext:
        """A client's context, with a certificate of its own if it has a name."""
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
        self._root.configure_trust(context)
        if common_name is not None:
            self._issue(common_name).configure_cert(context)
        return context

    def write(
        self, folder: Path, common_name: str | None = None, names: Sequence[str] = ()
    ) -> CertificateFiles:
        """Write the authority's certificate, and a client's with its key, as PEM files.

        Shapes:  names: what the certificate is for, if it is a server's.
        """
        folder.mkdir(parents=True, exist_ok=True)
        authority = folder / "ca.pem"
        self._root.cert_pem.write_to_path(str(authority))
        if common_name is None:
            return CertificateFiles(authority)
        issued = self._issue(common_name, names)
        name = quote(common_name, safe="")
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        chain = folder / f"{name}.chain.pem"
        chain.write_bytes(_pkcs8(issued.private_key_pem.bytes()) + certificate.read_bytes())
        for secret in (key, chain):
            secret.chmod(0o600)
        return CertificateFiles(authority, certificate, key, chain)

    def _issue(self, common_name: str, names: Sequence[str] = ()) -> trustme.LeafCert:
        return self._root.issue_cert(
            *names,
            common_name=common_name,
            organization_name="minicluster",
            organization_unit_name="tests",
        )


def _pkcs8(pem: bytes) -> bytes:
    """A key in the form in which alone Java reads it from PEM."""
    key = serialization.load_pem_private_key(pem, password=None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
