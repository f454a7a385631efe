"""A run folder's place: written beside it, then renamed, and nothing else is touched.

    .orders-7.writing-4711-1/   every file of the new run, run.json last
    orders-7/                   the run before, whole, until the rename

**Invariant:** a folder owns what ``run.json`` lists under ``files``; any other file in it stays
(tests/actors/test_saving.py).
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2s
from pathlib import Path
from typing import Any

from minicluster.errors import UserError
from minicluster.files import FILE_NAME_BYTES_MAX
from minicluster.log.locating import RUN_NAME
from minicluster.own_folders import OwnFolder, locked
from minicluster.verify.evidence.file_systems import is_uri, uri_of

FILES = "files"  # the list in run.json
NAME_BYTES_MAX = 200  # a file name has 255; seed and faults come behind it
HEADER_BYTES_MAX = 64 << 20
WRITTEN_LATER = ("report.html", "report.json")  # of the same run, once it is judged


class Unwritable(UserError):
    """A folder in which no run folder can be made."""

    exit_code = 74


def escaped_name(text: str) -> str:
    """Text as a file name: different texts never share one.

    A space is ``-``, a dash is ``_``, anything but letters, digits and inner dots is ``%XX``.

    Errors:  UserError if the name has more bytes than are allowed.
    """
    name = "".join(_escaped(character, index) for index, character in enumerate(text))
    if len(name) > NAME_BYTES_MAX:
        raise UserError(
            f"the name {text[:30]!r}… makes a folder name of {len(name)} bytes; "
            f"at most {NAME_BYTES_MAX} are allowed"
        )
    return name


def _escaped(character: str, index: int) -> str:
    if character in " -":
        return "-" if character == " " else "_"
    if character.isascii() and (character.isalnum() or (character == "." and index)):
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def put_in_place(path: Path, write: Callable[[Path], Mapping[str, Any]]) -> Path:
    """Write a run folder beside its place and rename it once it is whole.

    Shapes:  write: an empty folder -> the header, which becomes ``run.json`` with the list of
             files. What lies at the place and is not a file of an earlier run stays there.
    Errors:  UserError where the place cannot be a run folder; OSError of the file system.
    """
    place = check_place(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _folder_beside(place) as new:
            header = dict(write(new))
            header[FILES] = sorted([*_files_in(new), RUN_NAME, *WRITTEN_LATER])
            text = json.dumps(header, indent=1) + "\n"
            (new / RUN_NAME).write_text(text, encoding="utf-8")
            with locked(place.parent):
                _swap(new, place, path)
    except OSError as error:  # of the folder beside it, or of Arrow, which names no file
        why = error.strerror or re.sub(r"^.*\[errno \d+\] ", "", str(error))
        raise OSError(error.errno or errno.EIO, why, str(path)) from None
    return path


def check_place(shown: Path) -> Path:
    """The real path of a place for a run folder, before anything is played or written.

    Errors:  UserError where the place cannot be a run folder; OSError of the file system.
    """
    try:
        os.fsencode(shown)
        place = shown.resolve()
    except ValueError:  # half of a surrogate pair, or a zero byte
        raise UserError(f"{str(shown)!a}: no folder can have this name") from None
    if len(place.name.encode("utf-8", "surrogatepass")) > FILE_NAME_BYTES_MAX:
        raise UserError(
            f"{str(shown)[:60]}…: a folder's name has at most {FILE_NAME_BYTES_MAX} bytes"
        )
    if place.parent.exists() and not place.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(shown))
    if place.exists() and not place.is_dir():
        raise UserError(f"{shown}: is a file; name a folder")
    if Path.cwd().is_relative_to(place):
        raise UserError(f"{shown}: is where this process works; name a folder in it")
    if place.is_dir():
        _owned(place, shown)
    return place


def check_writable(runs: Path, what: str = "run folder") -> None:
    """Make a folder and see that files can be made in it, before anything is played.

    Errors:  UserError, of the exit code for files, where they cannot.
    """
    if is_uri(runs):
        raise Unwritable(
            f"{uri_of(runs)}: is another file system; "
            "only run, replay, chaos and what-if write there"
        )
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=runs):
            return
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Unwritable(f"{runs}: no {what} can be made in it: {why}") from None


def holds_another(place: Path, scenario: Mapping[str, Any]) -> bool:
    """True where a place holds the run of another scenario."""
    try:
        present = scenario_in((place / RUN_NAME).read_bytes())
    except OSError:
        return False
    return present is not None and present != json.loads(json.dumps(scenario))


def scenario_in(header: bytes) -> dict[str, Any] | None:
    """The scenario in the content of a ``run.json``; None where it has none."""
    scenario: dict[str, Any] | None = _field(header, "scenario", dict)
    return scenario


def files_in(header: bytes) -> frozenset[str]:
    """The files that a run owns, by the content of its ``run.json``."""
    return frozenset(map(str, _field(header, FILES, list) or ()))


def _field(header: bytes, name: str, kind: type) -> Any:
    """A field of a ``run.json``; None where it is of another kind."""
    with suppress(ValueError, RecursionError):
        content = json.loads(header)
        value = content.get(name) if isinstance(content, dict) else None
        return value if isinstance(value, kind) else None


def _owned(place: Path, shown: Path) -> frozenset[str]:
    """The files of the run that lies at a place; none where there is no run.

    Errors:  UserError for a ``run.json`` that is not a run's.
    """
    header = place / RUN_NAME
    if not header.is_symlink() and not header.exists():
        return frozenset()
    status = header.lstat()
    listed: Any = None
    if stat.S_ISREG(status.st_mode) and status.st_size <= HEADER_BYTES_MAX:
        with suppress(ValueError, LookupError, TypeError, RecursionError, OSError):
            listed = json.loads(header.read_text(encoding="utf-8"))[FILES]
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise UserError(
            f"{shown}: its {RUN_NAME} lists no files of a run, so it stays; name another folder"
        )
    return frozenset(listed)


def _swap(new: Path, place: Path, shown: Path) -> None:
    """Put the new folder at its place; what the run before did not write moves with it."""
    _finish_swap(place, shown)
    if not place.exists():
        new.rename(place)
        return
    owned = _owned(place, shown)
    for name in _files_in(place):
        if name not in owned:
            _keep(place / name, new / name, f"{shown}/{name}")
    before = _before(place)
    place.rename(before)
    try:
        new.rename(place)
    except OSError:
        before.rename(place)
        raise
    _finish_swap(place, shown)


def _before(place: Path) -> Path:
    """Where a run lies for the moment between two renames."""
    return (
        place.parent / f".{place.name[:40]}.before-{blake2s(place.name.encode()).hexdigest()[:8]}"
    )


def _finish_swap(place: Path, shown: Path) -> None:
    """Finish a swap, this process's own or that of a process that was killed in between."""
    before = _before(place)
    if not before.exists():
        return
    if not place.exists():
        before.rename(place)
        return
    owned = _owned(before, shown)
    for name in _files_in(before):
        if name not in owned and not os.path.lexists(place / name):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (before / name).rename(place / name)
    shutil.rmtree(before, ignore_errors=True)


def _keep(old: Path, new: Path, shown: str) -> None:
    """Let a user's file be in the new folder, the same file where links are possible."""
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        is_taken = os.path.lexists(new)
    except (FileExistsError, NotADirectoryError):
        is_taken = True
    if is_taken:
        raise UserError(f"{shown}: is not a file of a run and has the name of one; move it away")
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError:
        shutil.copy2(old, new, follow_symlinks=False)


def _files_in(folder: Path) -> list[str]:
    """Everything below a folder but folders, by name; links are not followed."""
    paths = []
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        paths += [(Path(parent) / name).relative_to(folder).as_posix() for name in files + links]
    return sorted(paths)


@contextmanager
def _folder_beside(place: Path) -> Iterator[Path]:
    """A hidden folder beside a place; it goes in the end, and those of killed processes do now."""
    with OwnFolder(place.parent, f".{place.name[:40]}.writing-") as folder:
        yield folder.path
