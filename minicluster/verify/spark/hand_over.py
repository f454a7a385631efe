"""Started in place of Python by Spark: passes its streams and environment to ``early_workers``.

It imports nothing but the standard library, so that it starts in milliseconds. Where nobody takes
what it passes, it becomes the Python that Spark wanted.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

LENGTH = struct.Struct(">I")
STREAMS = (0, 1, 2)


def main(path: str, python: str, arguments: list[str]) -> None:
    """Pass on what Spark gave this process, and last as long as the process that took it."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
            content = json.dumps({"environment": dict(os.environ), "arguments": arguments}).encode()
            socket.send_fds(connection, [LENGTH.pack(len(content))], STREAMS)
            connection.sendall(content)
            is_taken = connection.recv(1) != b""
        except OSError:
            is_taken = False
        if not is_taken:
            os.execv(python, [python, *arguments])
        connection.recv(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
