"""TLS on a program's socket in memory: what ``SSLContext.wrap_socket`` gives a client of its own.

OpenSSL works on two buffers in memory (``ssl.MemoryBIO``). A socket that does not block says that
it would with the errors of ``ssl.SSLSocket``.
"""

from __future__ import annotations

import ssl
from typing import Any

from minicluster.actors.programs.sockets import Socket

_CHUNK = 64 * 1024
_of_system = ssl.SSLContext.wrap_socket


def wrap_socket(context: ssl.SSLContext, sock: Any, *args: Any, **options: Any) -> Any:
    """``SSLContext.wrap_socket``: of a program's socket the client's side."""
    if not isinstance(sock, Socket):
        return _of_system(context, sock, *args, **options)
    wrapped = TlsSocket(context, sock, options.get("server_hostname"))
    if options.get("do_handshake_on_connect", True) and sock.carrier is not None:
        wrapped.do_handshake()
    return wrapped


class TlsSocket:
    """A socket whose bytes are those of TLS; all else is the socket's below."""

    def __init__(self, context: ssl.SSLContext, below: Socket, hostname: str | None) -> None:
        self.below = below
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)

    def do_handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
            except ssl.SSLError:
                self._flush()  # the alert that says why
                raise
            else:
                self._flush()
                return

    def recv(self, size: int = 1024, flags: int = 0) -> bytes:
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._receive()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def send(self, data: Any, flags: int = 0) -> int:
        below = self.below
        if below.carrier is not None and below.gettimeout() == 0 and not below.is_writable():
            raise ssl.SSLWantWriteError(ssl.SSL_ERROR_WANT_WRITE, "the socket is full")
        written = self._tls.write(memoryview(data)[:_CHUNK])
        self._flush()
        return written

    def sendall(self, data: Any, flags: int = 0) -> None:
        view = memoryview(data)
        while view:
            view = view[self.send(view) :]

    def pending(self) -> int:
        return self._tls.pending()

    def getpeercert(self, binary_form: bool = False) -> Any:
        return self._tls.getpeercert(binary_form)

    def version(self) -> str | None:
        return self._tls.version()

    def cipher(self) -> Any:
        return self._tls.cipher()

    def _receive(self) -> None:
        """Take what has come.

        Errors:  SSLWantReadError where nothing has, and the socket does not block.
        """
        try:
            data = self.below.recv(_CHUNK)
        except BlockingIOError:
            why = "The operation did not complete (read)"
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, why) from None
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self.below.send(self._outgoing.read())
