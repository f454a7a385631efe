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

from minicluster.verify.spark.early_workers import EarlyWorkers
from minicluster.verify.spark.jvm import Jvm, SparkUnavailable, java_version, wheel_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    "spark.sql.ui.explainMode": "simple",  # each plan is printed, with or without a page
    "spark.sql.maxPlanStringLength": "0",
    "spark.sql.debug.maxToStringFields": "3",
    "spark.sql.lightweightPlanChangeValidation": "false",  # of each optimizer rule's result
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
_MASTER = re.compile(r"local|yarn$|spark://|k8s://")  # SparkSubmit.prepareSubmitEnvironment
_AUTHENTICATED = {"spark.authenticate": "true"}

_GATEWAY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


_NAME = "minicluster"
_jvm: Jvm | None = None
_session: SparkSession | None = None
_jobs: _Jobs | None = None
_early: EarlyWorkers | None = None


def warm_up(
    *, master: str | None = None, remote: str | None = None, training: bool = False
) -> None:
    """Start the JVM in the background, so that it loads while the caller does something else.

    Shapes:  ``training``: what follows is typical work, so its classes are worth an archive.
    """
    global _jvm, _early
    if _jvm is not None or _session is not None or _jobs is not None or remote:
        return
    if master and not _LOCAL_MASTER.fullmatch(master):  # its executors need a whole Java
        return
    if _GATEWAY[0] in os.environ or _users_java() is not None or _active() is not None:
        return
    found = wheel_java()
    if found is not None:
        java, version = found
        _jvm = Jvm(java, version=version, training=training)
        if training:
            _early = EarlyWorkers.started(_jvm.folder)


def archive_note() -> str | None:
    """One line about the class archive that this process leaves, None where it leaves none."""
    if _jvm is None or not _jvm.trains or _jvm.archive is None:
        return None
    return (
        f"the first run leaves some 190 MB in {_jvm.archive.parent}, by which later ones start "
        "quicker; Java writes them in the background for up to two minutes "
        "(MINICLUSTER_CACHE=off: never)"
    )


def finish_archive() -> Path | None:
    """Stop the JVM and wait until it has written the archive that it makes.

    Shapes:  -> the archive that later runs find, None where there is none.
    """
    java = _jvm
    close()
    return None if java is None else java.finished_archive()


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
            _connect()
            if _jvm is None:
                _check_launcher(master)
            for key, value in _settings(master).items():
                builder = builder.config(key, value)
            _session = builder.getOrCreate()
    assert _session is not None
    return _session


def spark_for_jobs(
    spark: SparkSession | None = None, *, master: str | None = None, remote: str | None = None
) -> Any:
    """The session to use for jobs without SQL: in a process of its own Spark's context alone.

    Errors:  SparkUnavailable if Spark cannot be started or reached.
    """
    global _jobs
    is_local = not remote and (master is None or _LOCAL_MASTER.fullmatch(master))
    if spark is not None or not is_local or _session is not None or _active() is not None:
        return spark_session(spark, master=master, remote=remote)
    if _jobs is None:
        with _starting():
            from pyspark import SparkConf, SparkContext

            warm_up(master=master)
            _connect()
            if _jvm is None:
                _check_launcher(master)
            settings = SparkConf().setAppName(_NAME).setAll(list(_settings(master).items()))
            _jobs = _Jobs(SparkContext.getOrCreate(settings))
            if _early is not None:
                _jobs.sparkContext.pythonExec = str(_early.python)
    return _jobs


class _Jobs:
    """A Spark context as a session has it.

    It spares a cold run what a session of SQL loads, a quarter of Java's time.
    """

    def __init__(self, context: Any) -> None:
        self.sparkContext = context
        self._jsc = context._jsc


def _settings(master: str | None) -> dict[str, str]:
    chosen = master or "local[2]"
    safe = _AUTHENTICATED if _LOCAL_MASTER.fullmatch(chosen) else {}
    return {**_LEAN, **safe, "spark.master": chosen}


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Around the start of a session, which ends with this process.

    Errors:  SparkUnavailable with one line.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Errors are reported here.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield
    except SparkUnavailable:
        raise
    except Exception as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise SparkUnavailable(f"Spark: no session: {first[0]}") from error
    except SystemExit as error:  # pyspark exits where Spark Connect lacks a package
        needs = "Spark Connect needs more packages (pip install 'pyspark[connect]')"
        raise SparkUnavailable(f"Spark: no session: {needs}") from error
    finally:
        _forget_connection()
    atexit.register(_end)


def close() -> None:
    """Stop the session and its JVM; a later call of ``spark_session`` starts new ones."""
    global _session, _jobs, _jvm, _early
    if _session is not None:
        with contextlib.suppress(Exception):
            _session.stop()
    elif _jobs is not None:
        with contextlib.suppress(Exception):
            _jobs.sparkContext.stop()
    if _jvm is not None:
        if _session is not None or _jobs is not None:
            _drop_gateway()
        _jvm.close()
        _forget_connection()
    if _early is not None:
        _early.close()
    _session = _jobs = _jvm = _early = None


def _end() -> None:
    """End with this process: nothing waits for an orderly stop of jobs that have ended."""
    logging.getLogger().addFilter(_is_no_lost_connection)
    if _jvm is not None and _jobs is not None and _session is None and not _jvm.trains:
        # The thread that collects counts from workers is not to print that its connection ended.
        _jobs.sparkContext._accumulatorServer.handle_error = lambda *_: None
        _jvm.kill()
        _drop_gateway()
        _forget_connection()
        if _early is not None:
            _early.close()
    else:
        close()


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    """False for py4j's traceback of a Java object that it released while the JVM ended."""
    return record.getMessage() != "Exception while sending command."


def _drop_gateway() -> None:
    from pyspark import SparkContext

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


def _check_launcher(master: str | None) -> None:
    """Refuse in one line what Spark's launcher refuses in several.

    Errors:  SparkUnavailable.
    """
    if master is not None and not _MASTER.match(master):
        known = "local[2], local-cluster[2,1,1024], spark://HOST:PORT, yarn or k8s://…"
        raise SparkUnavailable(f"Spark: {master!r} is no master; write {known}")
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


def _forget_connection() -> None:
    """A process that this one starts must not take this one's JVM for its own."""
    if _jvm is not None:  # else the user set them
        for name in _GATEWAY:
            os.environ.pop(name, None)


def _active() -> SparkSession | None:
    """A session that somebody else in this process has started."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _users_java() -> Path | None:
    """The user's own JAVA_HOME, if Spark can run on it."""
    home = os.environ.get("JAVA_HOME")
    version = java_version(Path(home)) if home else None
    return Path(str(home)) if version is not None and version >= 17 else None
