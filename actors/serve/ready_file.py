"""The ready file: where a serving cluster is, and the token of its control socket.

It appears whole once clients can connect, and goes when the cluster ends. Every serving cluster of
a user has one in a folder that is the user's alone, so that ``do`` finds it by an address.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import asdict

from minicluster.errors import UserError
from minicluster.files import UnusableFile, read_bytes
from minicluster.values import Value

READY_BYTES_MAX = 64 * 1024
_LOOPBACKS = ("localhost", "127.0.0.1", "[::1]")


class ReadyFile(Value, kw_only=True):
    """The content of a ready file.

    Shapes:  name: of the cluster, for people; directory: the one in which it was started; run: the
             run folder to come.
    """

    name: str
    directory: str
    bootstrap_servers: str
    control: str
    token: str
    pid: int
    runs: str
    run: str

    def write(self, path: Path) -> None:
        """Write it beside its place, for this user alone, and rename it.

        Errors:  OSError of the file system.
        """
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        with suppress(FileNotFoundError):
            beside.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self), indent=1) + "\n")
        beside.replace(path)

    @contextmanager
    def at(self, places: Iterable[Path]) -> Iterator[None]:
        """The file is at these places, until the end of the section.

        Errors:  OSError of the file system.
        """
        written: list[Path] = []
        try:
            for path in places:
                self.write(path)
                written.append(path)
            yield
        finally:
            for path in written:
                self.remove(path)

    def remove(self, path: Path) -> None:
        """Remove it, unless another cluster has written its own in this place."""
        with suppress(UserError, OSError):
            if read_ready_file(path).token == self.token:
                path.unlink()

    @property
    def address(self) -> str:
        """The address that names the cluster to people: that of its first broker."""
        return self.bootstrap_servers.partition(",")[0]

    def has_address(self, address: str) -> bool:
        """True for the address of the control socket or of a broker."""
        return any(
            _normal(address) == _normal(own)
            for own in (self.control, *self.bootstrap_servers.split(","))
        )


class NotOne(UserError):
    """Of the clusters that serve none is meant, or several are.

    Shapes:  serving: those to choose from.
    """

    def __init__(self, text: str, serving: Sequence[ReadyFile]) -> None:
        super().__init__(text)
        self.serving = serving


def read_ready_file(path: Path) -> ReadyFile:
    """Read a ready file.

    Errors:  UserError in one line where there is none, and for a file that is none.
    """
    try:
        content = json.loads(read_bytes(path, max_bytes=READY_BYTES_MAX))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; no cluster serves yet") from None
    except (OSError, UnusableFile, ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not a ready file: {error}") from None
    kinds = {name: int if name == "pid" else str for name in ReadyFile.__struct_fields__}
    wrong = [
        name
        for name, kind in kinds.items()
        if not isinstance(content, dict) or not isinstance(content.get(name), kind)
    ]
    if wrong:
        raise UserError(f"{path}: is not a ready file: it has no {wrong[0]}")
    return ReadyFile(**{name: content[name] for name in kinds})


def place_of_user() -> Path | None:
    """The folder of the ready files of this user's clusters, None where no private one can be."""
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    user = str(os.getuid()) if sys.platform != "win32" else os.environ.get("USERNAME", "user")
    folder = Path(parent) / f"minicluster-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if sys.platform != "win32" and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        return None
    return folder


def serving_clusters() -> Iterator[ReadyFile]:
    """The clusters of this user that serve now; files of killed processes are removed."""
    folder = place_of_user()
    for path in () if folder is None else sorted(folder.glob("*.json")):
        try:
            cluster = read_ready_file(path)
        except UserError:
            continue
        if _runs(cluster.pid):
            yield cluster
        else:
            cluster.remove(path)


def serving_at(address: str) -> ReadyFile:
    """The cluster of this user at an address.

    Errors:  UserError where there is none; NotOne if others serve.
    """
    return _only(
        lambda cluster: cluster.has_address(address), f"{address}: no cluster of yours serves there"
    )


def serving_from(directory: Path) -> ReadyFile:
    """The cluster that was started in a directory.

    A cluster of another project is never meant: it has been killed for one that had ended.

    Errors:  UserError where none serves; NotOne if others do, or several are meant.
    """
    started = str(directory.resolve())
    return _only(
        lambda cluster: cluster.directory == started, f"no cluster was started in {started}"
    )


def serving_into(runs: Path) -> ReadyFile:
    """The cluster that leaves its run in a folder of runs.

    Errors:  UserError where none serves; NotOne if others do, or several are meant.
    """
    kept = str(runs.resolve())
    return _only(lambda cluster: cluster.runs == kept, f"no cluster leaves its run in {kept}")


def _only(is_meant: Callable[[ReadyFile], bool], none: str) -> ReadyFile:
    serving = list(serving_clusters())
    meant = [cluster for cluster in serving if is_meant(cluster)]
    if len(meant) == 1:
        return meant[0]
    if not serving:
        raise UserError("no cluster of yours serves here; start one: minicluster serve")
    why = f"{len(meant)} clusters are meant" if meant else none
    raise NotOne(f"{why}; name one with --at", meant or serving)


def _normal(address: str) -> str:
    host, _, port = address.strip().rpartition(":")
    return f"loopback:{port}" if host in _LOOPBACKS else f"{host}:{port}"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
