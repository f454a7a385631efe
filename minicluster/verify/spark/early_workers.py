"""Python's workers, which are ready when Spark's first task is.

Spark starts its daemon of workers with the first task. In a cold run the imports and the
compilation of the rules then took a second and a half in which nothing else happened. Here a
process does both while Java starts, and becomes that daemon when Spark starts one:

    Spark ── starts ──> hand_over ── streams, environment, arguments ──> main ── forks ──> workers

Source:  pyspark.daemon, org.apache.spark.api.python.PythonWorkerFactory.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

_MAIN = "from minicluster.verify.spark.early_workers import main; main()"
_PATH_BYTES_MAX = 100  # of a socket's name
_END_LIMIT_S = 3.0
_STANDARD_INPUT = 0


class EarlyWorkers:
    """The process that becomes the daemon; ``python`` is what Spark starts in place of Python."""

    def __init__(self, folder: Path) -> None:
        path = folder / "workers"
        self.python = folder / "python"
        here = Path(__file__).parent / "hand_over.py"
        command = shlex.join([sys.executable, "-I", "-S", str(here), str(path), sys.executable])
        self.python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.python.chmod(0o700)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(listener.fileno(),),
                cwd=folder,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # none of its threads is forked
                process_group=0,  # of its own, as a daemon of Spark's is
            )

    @classmethod
    def started(cls, folder: Path) -> Self | None:
        """The process, where the system has what it needs and the folder's files may be run."""
        if sys.platform != "linux" or len(os.fsencode(folder)) > _PATH_BYTES_MAX:
            return None
        wanted = os.environ.get("PYSPARK_PYTHON", sys.executable)
        if wanted != sys.executable or not os.access("/bin/sh", os.X_OK):
            return None
        early = cls(folder)
        if os.access(early.python, os.X_OK):
            return early
        early.close()
        return None

    def close(self) -> None:
        """End the process; its standard input, its life line, ends one whose maker was killed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main() -> None:
    """Prepare for the usual task, wait to be taken, and be Spark's daemon from then on."""
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        _prepare()
        ready, _, _ = select.select([listener.fileno(), _STANDARD_INPUT], [], [])
        if listener.fileno() not in ready:
            return
        connection, _ = listener.accept()
    with connection, contextlib.suppress(SystemExit):
        _take(connection)
        from pyspark import daemon

        daemon.manager()


def _prepare() -> None:
    """Import what workers import, and compile all that the usual task may need."""
    import pyspark.worker  # noqa: F401

    from minicluster.log.format.limits import DEFAULT_LIMITS
    from minicluster.verify.rules import RULES
    from minicluster.verify.spark.fold_job import Task, compile_task

    compile_task(Task(RULES, DEFAULT_LIMITS))


def _take(connection: socket.socket) -> None:
    """Be the process that handed itself over: its streams, its environment, its arguments."""
    from minicluster.verify.spark.hand_over import LENGTH, STREAMS

    head, streams, _, _ = socket.recv_fds(connection, LENGTH.size, len(STREAMS))
    with connection.makefile("rb") as file:
        (length,) = LENGTH.unpack(head)
        given = json.loads(file.read(length))
    for stream, descriptor in zip(STREAMS, streams, strict=True):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(given["environment"])
    found = given["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [path for path in found if path and path not in sys.path]
    sys.argv = given["arguments"][1:]  # after -m
    connection.sendall(b"\0")
