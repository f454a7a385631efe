"""The logs of a broker's internal topics: in its log directories, or in the archive of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from minicluster.log.errors import LogError, NotALog
from minicluster.log.format.limits import ReadLimits
from minicluster.log.locating import Located, locate
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

UNPACKED_BYTES_MAX = 1 << 30
_ARCHIVE = ".zip"
_INTERNAL = re.compile(rf"({GROUP_METADATA_TOPIC}|{TRANSACTION_STATE_TOPIC})-([0-9]{{1,9}})")
_OF_A_TOPIC = re.compile(r".+-[0-9]{1,9}")
_DEPTHS = ("*", "*/*")  # in a log directory, in the folder of all log directories


@contextmanager
def located(path: Path, limits: ReadLimits) -> Iterator[Located]:
    """The logs that a path names, which may lead into the archive of a broker.

    Shapes:  as ``locate``. A broker's archive, or one of its log directories: those logs of
             internal topics that hold records.
    Errors:  NotALog.
    """
    above = (path, *path.parents)
    archives = (each for each in above if each.suffix == _ARCHIVE and each.is_file())
    archive = next(archives, None)
    if archive is None:
        yield _located(path, limits)
        return
    inside = path.relative_to(archive)
    with TemporaryDirectory(prefix="minicluster-") as folder:
        try:
            _unpack(archive, inside, Path(folder))
            yield _located(Path(folder) / inside, limits)
        except LogError as error:  # also of who reads what was located
            error.args = (str(error).replace(folder, str(archive)),)
            raise


def _located(path: Path, limits: ReadLimits) -> Located:
    try:
        return locate(path, limits=limits)
    except NotALog:
        internal = [_internal(child) for depth in _DEPTHS for child in path.glob(depth)]
        folders = [folder for _, folder in sorted(each for each in internal if each is not None)]
        if not folders:
            if any(_is_of_a_topic(child) for depth in _DEPTHS for child in path.glob(depth)):
                why = "no log of an internal topic here holds records"
                raise NotALog(f"{path}: {why}") from None
            raise
        logs = [log for folder in folders for log in locate(folder, limits=limits).logs]
        return Located(path, None, tuple(logs))


def _is_of_a_topic(folder: Path) -> bool:
    return _OF_A_TOPIC.fullmatch(folder.name) is not None and any(folder.glob("*.log"))


def _internal(folder: Path) -> tuple[tuple[str, int], Path] | None:
    """A folder of an internal topic that holds records, by topic and partition."""
    match = _INTERNAL.fullmatch(folder.name)
    if match is None or not any(log.stat().st_size for log in folder.glob("*.log")):
        return None
    return (match[1], int(match[2])), folder


def _unpack(archive: Path, inside: Path, folder: Path) -> None:
    """Unpack what lies at or below a path of an archive."""
    start = "" if inside == Path() else inside.as_posix()
    try:
        with ZipFile(archive) as opened:
            members = [
                member
                for member in opened.infolist()
                if not start or member.filename == start or member.filename.startswith(f"{start}/")
            ]
            if not members:
                raise NotALog(f"{archive}: holds nothing at {start or 'all'}")
            size = sum(member.file_size for member in members)
            if size > UNPACKED_BYTES_MAX:
                raise NotALog(f"{archive}: unpacks to {size} bytes; {UNPACKED_BYTES_MAX} at most")
            opened.extractall(folder, members)
    except (BadZipFile, NotImplementedError, RuntimeError) as error:
        raise NotALog(f"{archive}: is not an archive of a broker: {error}") from None
