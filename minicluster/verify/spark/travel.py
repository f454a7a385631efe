"""Other machines: this package goes to executors, files come from the paths of Hadoop."""

from __future__ import annotations

import re
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.errors import UserError
from minicluster.own_folders import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URI = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)")
_IN_THIS_PROCESS = re.compile(r"local(\[.+\])?")
_PACKAGE = Path(__file__).parents[2]
_shipped: weakref.WeakSet[Any] = weakref.WeakSet()


def ship_package(spark: SparkSession) -> None:
    """Send this package to the session's executors, which need not have it; once per session."""
    is_classic = hasattr(spark, "_jsc")
    if is_classic and _IN_THIS_PROCESS.fullmatch(str(spark.sparkContext.master)):
        return
    if spark in _shipped:
        return
    own = temporary_folder("package")
    weakref.finalize(spark, own.remove)  # executors that start late fetch it
    archive = _archive(own.path)
    if is_classic:
        spark.sparkContext.addPyFile(str(archive))
    else:
        spark.addArtifacts(str(archive), pyfile=True)
    _shipped.add(spark)


def _archive(folder: Path) -> Path:
    path = folder / "minicluster.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                archive.write(file, Path("minicluster") / file.relative_to(_PACKAGE))
    return path


def is_uri(path: Path | str) -> bool:
    """The path is on a file system of Hadoop, not on this machine's."""
    return _URI.fullmatch(str(path)) is not None and not Path(path).exists()


def fetched(
    paths: Sequence[Path | str], session: Callable[[], SparkSession], folder: Path
) -> list[Path | str]:
    """The paths, those on Hadoop's file systems copied into a folder of this machine.

    Errors:  UserError for one that is not there or cannot be read.
    """
    return [_fetch(session(), path, folder) if is_uri(path) else path for path in paths]


def _fetch(spark: SparkSession, path: Path | str, folder: Path) -> Path:
    match = _URI.fullmatch(str(path))
    assert match is not None
    scheme, rest = match.groups()
    uri = f"{scheme}:///{rest}" if scheme == "file" else f"{scheme}://{rest}"
    if not hasattr(spark, "_jsc"):
        raise UserError(f"{uri}: a Spark Connect session copies no files; give a local path")
    jvm: Any = spark.sparkContext._jvm
    source = jvm.org.apache.hadoop.fs.Path(uri)
    target: Path = Path(tempfile.mkdtemp(dir=folder)) / str(source.getName())
    try:
        system = source.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        system.copyToLocalFile(False, source, jvm.org.apache.hadoop.fs.Path(str(target)), True)
    except Exception as error:
        cause: Any = getattr(error, "java_exception", None)
        why = error if cause is None else cause.getMessage()
        raise UserError(f"{uri}: cannot be read: {str(why).splitlines()[0]}") from None
    return target
