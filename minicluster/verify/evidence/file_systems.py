"""Runs and logs on other file systems: S3, Google Cloud, Azure and HDFS, as Arrow opens them.

A path there is copied to this machine before it is read. Schemes that Arrow has no file system for
are left to Hadoop's, in the Java process of Spark (``spark.travel``).

Source:  pyarrow.fs.FileSystem.from_uri; ``s3a`` is Hadoop's name of ``s3``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from minicluster.errors import UserError
from minicluster.log.locating import RUN_NAME
from minicluster.own_folders import temporary_folder
from minicluster.values import Value

_URI = r"([a-z][a-z0-9+.-]+):/+([^?]*)(\?.*)?"
_NAMES_OF_HADOOP = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}
_NAMES_KEPT = 3  # a run is named by its folder, a log by those around it


class Unreachable(UserError):
    """A path on another file system that is not there, or cannot be read or written."""

    exit_code = 66


def on_this_machine(path: Path | str) -> Path | str:
    """The path of a ``file:`` URI; any other path as it is."""
    match = re.fullmatch(_URI, str(path))
    return Path("/" + match[2]) if match and match[1] == "file" and is_uri(path) else path


def is_uri(path: Path | str) -> bool:
    """The path is on another file system than this machine's."""
    return re.fullmatch(_URI, str(path)) is not None and not Path(path).exists()


def uri_of(path: Path | str) -> str:
    """The URI as it was given; a ``Path`` has lost a slash of it.

    Shapes:  options, such as those of a bucket (``?region=…``), stay behind the path.
    """
    match = re.fullmatch(_URI, str(path))
    assert match is not None
    scheme, rest, options = match.groups()
    return f"{scheme}:///{rest}" if scheme == "file" else f"{scheme}://{rest}{options or ''}"


def below(uri: str, name: str) -> str:
    """The URI of a file or folder in a folder."""
    path, mark, options = uri.partition("?")
    return f"{path.rstrip('/')}/{name}{mark}{options}"


def target_in(uri: str, folder: Path) -> Path:
    """A place for a copy: new, with the last names of the URI's path."""
    path = uri.partition("?")[0].split(":", 1)[1]
    names = [name for name in PurePosixPath(path.lstrip("/")).parts if name not in (".", "..")]
    target = Path(tempfile.mkdtemp(dir=folder), *names[-_NAMES_KEPT:])
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


class Place(Value):
    """A file or folder on a file system of Arrow's."""

    uri: str
    system: Any
    path: str

    def fetch(self, folder: Path) -> Path:
        """A copy in a folder of this machine.

        Errors:  Unreachable.
        """
        from pyarrow import fs

        target = target_in(self.uri, folder)
        with self._errors("read"):
            if self.system.get_file_info(self.path).type == fs.FileType.NotFound:
                raise Unreachable(f"{self.uri}: there is no such file or folder")
            fs.copy_files(self.path, str(target), self.system, fs.LocalFileSystem())
        return target

    def read(self, start: int, end: int) -> bytes:
        """Some bytes of a file.

        Errors:  Unreachable.
        """
        with self._errors("read"), self.system.open_input_file(self.path) as file:
            return bytes(file.read_at(end - start, start))

    def content(self) -> bytes | None:
        """The bytes of a file; None where there is none.

        Errors:  Unreachable.
        """
        from pyarrow import fs

        with self._errors("read"):
            if self.system.get_file_info(self.path).type != fs.FileType.File:
                return None
            with self.system.open_input_file(self.path) as file:
                return bytes(file.read())

    def remove(self, names: Container[str]) -> None:
        """Remove those files of this folder, or of folders in it, whose names are given.

        Errors:  Unreachable.
        """
        from pyarrow import fs

        with self._errors("written"):
            inside = fs.FileSelector(self.path, allow_not_found=True, recursive=True)
            for file in self.system.get_file_info(inside):
                name = file.path.removeprefix(self.path).lstrip("/")
                if file.type == fs.FileType.File and name in names:
                    self.system.delete_file(file.path)

    def send(self, source: Path) -> None:
        """Write a copy of a file, or of a run folder, here.

        Who lists runs meanwhile sees a run once it is whole.

        Errors:  Unreachable.
        """
        with self._errors("written"):
            files = [source, *sorted(source.rglob("*"))]
            files.sort(key=lambda file: file.name == RUN_NAME)
            for file in filter(Path.is_file, files):
                inside = file.relative_to(source).as_posix()
                path = self.path if file == source else f"{self.path}/{inside}"
                self.system.create_dir(path.rpartition("/")[0], recursive=True)
                with self.system.open_output_stream(path) as out:
                    out.write(file.read_bytes())

    def check_writable(self) -> None:
        """See that a folder can be made here.

        Errors:  Unreachable.
        """
        with self._errors("written"):
            self.system.create_dir(self.path, recursive=True)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise Unreachable(f"{self.uri}: cannot be {what}: {why}") from None


def place_of(path: Path | str) -> Place | None:
    """The place that a URI names; None for a scheme that Arrow has no file system for here.

    Errors:  Unreachable for a URI that is malformed.
    """
    uri = uri_of(path)
    scheme, _, rest = uri.partition(":")
    opened = _opened(f"{_NAMES_OF_HADOOP.get(scheme, scheme)}:{rest}", uri)
    return None if opened is None else Place(uri, *opened)


def _opened(uri: str, shown: str) -> tuple[Any, str] | None:
    """The file system of a URI, and the path in it."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(uri)
    except pa.ArrowInvalid as error:
        if "nrecognized filesystem" in str(error):
            return None
        raise Unreachable(f"{shown}: {str(error).splitlines()[0]}") from None
    except (OSError, NotImplementedError):  # HDFS without Hadoop's native library
        return None
    return system, path


@contextmanager
def at_hand(path: Path, origin: str | None) -> Iterator[Path]:
    """A path, or where another machine's copy of it is not here, a copy of its origin for a while.

    Errors:  Unreachable.
    """
    if origin is None or path.exists():
        yield path
        return
    with temporary_folder("fetched") as folder:
        yield opened(origin).fetch(folder.path)


@contextmanager
def local_copy(path: Path) -> Iterator[Path]:
    """A path of this machine's, or a copy of one on another file system for a while.

    Errors:  Unreachable.
    """
    local = Path(on_this_machine(path))
    with at_hand(local, uri_of(path) if is_uri(local) else None) as here:
        yield here


def opened(path: Path | str) -> Place:
    """The place that a URI names.

    Errors:  Unreachable.
    """
    place = place_of(path)
    if place is None:
        raise Unreachable(f"{uri_of(path)}: there is no file system for it here; s3:// is one")
    return place
