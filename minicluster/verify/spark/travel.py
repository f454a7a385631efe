"""Other machines: this package goes to executors, files come from other file systems."""

from __future__ import annotations

import os
import sys
import weakref
import zipfile
from collections.abc import Callable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.errors import UserError
from minicluster.own_folders import temporary_folder
from minicluster.verify.evidence.file_systems import (
    below,
    is_uri,
    on_this_machine,
    place_of,
    target_in,
    uri_of,
)
from minicluster.verify.spark.session import LOCAL_MASTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = Path(__file__).parents[2]
_NATIVE = tuple(EXTENSION_SUFFIXES)
_shipped: weakref.WeakSet[Any] = weakref.WeakSet()


def ship_package(spark: SparkSession) -> None:
    """Let the session's executors have this package: once per session it is sent to them.

    On this machine they run this process's Python, which has it, unless the user names another:
    Spark would run ``python3``, which is none of an environment that is not activated.
    """
    is_classic = hasattr(spark, "_jsc")
    if is_classic and LOCAL_MASTER.fullmatch(str(spark.sparkContext.master)):
        named = os.environ.get("PYSPARK_PYTHON") or spark.conf.get("spark.pyspark.python", None)
        if named is None:
            spark.sparkContext.pythonExec = sys.executable
        return
    if spark in _shipped:
        return
    own = temporary_folder("package")
    weakref.finalize(spark, own.cleanup)  # executors that start late fetch it
    archive = _archive(own.path)
    if is_classic:
        spark.sparkContext.addPyFile(str(archive))
    else:
        spark.addArtifacts(str(archive), pyfile=True)
    _shipped.add(spark)


def _archive(folder: Path) -> Path:
    """The package's sources: Python imports no native code from an archive.

    Those of the compiled wheel import mypy_extensions, so it goes with them.
    """
    path = folder / "minicluster.zip"
    is_compiled = False
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.name.endswith(_NATIVE):
                is_compiled = True
            elif file.is_file() and file.suffix != ".pyc":
                archive.write(file, Path("minicluster") / file.relative_to(_PACKAGE))
        if is_compiled:
            needed = find_spec("mypy_extensions")
            assert needed is not None and needed.origin is not None, "the wheel requires it"
            archive.write(needed.origin, "mypy_extensions.py")
    return path


class Fetched:
    """Paths of this machine for paths that users give, and where each of them comes from.

    Shapes:  session: starts Spark, whose Java opens what Arrow does not; None: nothing does.
    """

    def __init__(self, folder: Path, session: Callable[[], SparkSession] | None = None) -> None:
        self._folder = folder
        self._session = session
        self._origins: dict[Path, str] = {}

    def paths(self, paths: Sequence[Path | str]) -> list[Path | str]:
        """The paths, those on other file systems copied into the folder.

        Errors:  UserError for one that is not there or cannot be read.
        """
        return [self._fetched(path) if is_uri(path) else path for path in paths]

    def origin(self, path: Path) -> str | None:
        """The URI of a path that is in a copy, from which other machines may fetch it."""
        for root, uri in self._origins.items():
            if path == root:
                return uri
            if path.is_relative_to(root):
                return below(uri, path.relative_to(root).as_posix())
        return None

    def _fetched(self, path: Path | str) -> Path:
        local = on_this_machine(path)
        if not is_uri(local):
            return Path(local)
        uri = uri_of(path)
        place = place_of(path)
        if place is None:
            if self._session is None:
                why = "Arrow has no file system for it; views(spark, path) reads it by Hadoop's"
                raise UserError(f"{uri}: {why}")
            return _by_hadoop(self._session(), uri, self._folder)
        local = place.fetch(self._folder)
        self._origins[local] = uri
        return local


def _by_hadoop(spark: SparkSession, uri: str, folder: Path) -> Path:
    """A copy by the file systems of Hadoop that Spark's Java has on its class path.

    Errors:  UserError.
    """
    if not hasattr(spark, "_jsc"):
        raise UserError(f"{uri}: a Spark Connect session copies no files; give a local path")
    jvm: Any = spark.sparkContext._jvm
    source = jvm.org.apache.hadoop.fs.Path(uri)
    target = target_in(uri, folder)
    try:
        system = source.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        system.copyToLocalFile(False, source, jvm.org.apache.hadoop.fs.Path(str(target)), True)
    except Exception as error:
        cause: Any = getattr(error, "java_exception", None)
        why = error if cause is None else cause.getMessage()
        raise UserError(f"{uri}: cannot be read: {str(why).splitlines()[0]}") from None
    return target
