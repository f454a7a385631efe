"""One Spark session per process, started the quick way (``jvm``).

A session that the user gives, a ``--master``, a ``--remote`` and a ``JAVA_HOME`` of the user's own
go the ordinary way.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.verify.spark.jvm import Jvm, SparkUnavailable, java_version, wheel_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # What follows the rules' work is small, and code for one short run does not pay: 0.7 s of 6.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",  # one query is one job, whose tasks can be counted
}

# The driver listens on the loopback, where any local user may connect. In local mode Spark draws
# the secret itself (SecurityManager.initializeAuth); a cluster has its own settings.
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
LOCAL_MASTER = re.compile(r"local(\[.+\])?")
_MASTER = re.compile(r"local|yarn$|spark://|k8s://")  # SparkSubmit.prepareSubmitEnvironment
_AUTHENTICATED = {"spark.authenticate": "true"}

_GATEWAY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
_CUT_OFF = ("Exception while sending command.", "KeyboardInterrupt while sending command.")

_NAME = "minicluster"
_WITHOUT = "verify --engine process needs none"
_jvm: Jvm | None = None
_session: SparkSession | None = None


def warm_up(*, master: str | None = None, remote: str | None = None) -> None:
    """Start the JVM in the background, so that it loads while the caller does something else."""
    global _jvm
    if _jvm is not None or _session is not None or remote:
        return
    if master and not LOCAL_MASTER.fullmatch(master):  # its executors need a whole Java
        return
    if _GATEWAY[0] in os.environ or _has_java() or _active() is not None:
        return
    if (java := wheel_java()) is not None:
        _jvm = Jvm(java)
        _end_with_this_process()


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
    with _starting():
        from pyspark.sql import SparkSession

        builder: Any = SparkSession.builder
        builder = builder.appName(_NAME)
        if remote:
            _session = builder.remote(remote).getOrCreate()
        else:
            warm_up(master=master)
            if _jvm is None:
                _check_launcher(master)
            else:
                _connect(_jvm)
            for key, value in _settings(master).items():
                builder = builder.config(key, value)
            _session = builder.getOrCreate()
    assert _session is not None
    return _session


def _settings(master: str | None) -> dict[str, str]:
    chosen = master or "local[2]"
    safe = _AUTHENTICATED if LOCAL_MASTER.fullmatch(chosen) else {}
    here = _LOOPBACK if chosen.startswith("local") else {}
    return {**_SETTINGS, **here, **safe, "spark.master": chosen}


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Around the start of a session, which ends with this process.

    Errors:  SparkUnavailable with one line.
    """
    _end_with_this_process()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Errors are reported here.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield
    except SparkUnavailable:
        raise
    except Exception as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise SparkUnavailable(f"Spark: no session: {first[0]}; {_WITHOUT}") from error
    except SystemExit as error:  # pyspark exits where Spark Connect lacks a package
        needs = "Spark Connect needs more packages (pip install 'pyspark[connect]')"
        raise SparkUnavailable(f"Spark: no session: {needs}; {_WITHOUT}") from error


def _end_with_this_process() -> None:
    """End the JVM when this process ends, and print no traceback of py4j's for it."""
    logging.getLogger().addFilter(_is_no_lost_connection)
    atexit.unregister(close)
    atexit.register(close)


def close() -> None:
    """End the session, and a JVM of our own at once: no job is left whose end to wait for."""
    global _session, _jvm
    if _session is not None:
        with contextlib.suppress(Exception):
            if _jvm is None:
                _session.stop()
            else:  # The thread that collects counts from workers would print that it lost Java.
                server: Any = _session.sparkContext._accumulatorServer
                server.handle_error = lambda *_: None
    if _jvm is not None:
        _jvm.kill()
    _session = _jvm = None


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    """False for py4j's tracebacks of a call that Ctrl-C or the end of the JVM has cut off.

    The caller gets the error itself.
    """
    return record.getMessage() not in _CUT_OFF


def _connect(jvm: Jvm) -> None:
    """Let PySpark find the JVM; a process that this one starts must not take it for its own."""
    from pyspark import SparkContext

    os.environ.update(zip(_GATEWAY, jvm.connection(), strict=True))
    try:
        SparkContext._ensure_initialized()
    finally:
        for name in _GATEWAY:
            os.environ.pop(name, None)


def _check_launcher(master: str | None) -> None:
    """Reject in one line what Spark's launcher rejects in several.

    Errors:  SparkUnavailable.
    """
    if master is not None and not _MASTER.match(master):
        known = "local[2], local-cluster[2,1,1024], spark://HOST:PORT, yarn or k8s://…"
        raise SparkUnavailable(f"Spark: {master!r} is not a master; write {known}")
    if _GATEWAY[0] in os.environ or os.environ.get("SPARK_REMOTE") or _has_gateway():
        return
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    if shutil.which(java) is None:
        why = f"{java}: there is no such program" if home else "there is no java on the PATH"
        raise SparkUnavailable(f"Spark: needs a Java (17 or newer) here: {why}; set JAVA_HOME")


def _has_gateway() -> bool:
    """A Java of this process's runs already."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def _active() -> SparkSession | None:
    """A session that somebody else in this process has started."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _has_java() -> bool:
    """The user has a JAVA_HOME of their own, on which Spark can run."""
    home = os.environ.get("JAVA_HOME")
    return home is not None and (java_version(Path(home)) or 0) >= 17
