"""The place of a command's runs: a folder of this machine's, or one on another file system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minicluster.actors.recording.run_place import check_writable
from minicluster.own_folders import temporary_folder
from minicluster.verify.evidence.file_systems import (
    Place,
    below,
    is_uri,
    on_this_machine,
    opened,
    uri_of,
)


class RunsPlace:
    """The folder into which runs are written, and from there to the place that ``--runs`` names."""

    def __init__(self, folder: Path, place: Place | None) -> None:
        self.folder = folder
        self._place = place

    def publish(self, run: Path) -> str:
        """Let a run folder be at the place.

        Shapes:  -> the path or URI at which others find it.
        Errors:  Unreachable.
        """
        if self._place is None:
            return str(run)
        uri = below(self._place.uri, run.name)
        opened(uri).send(run)
        return uri


@contextmanager
def runs_place(runs: Path) -> Iterator[RunsPlace]:
    """The place that ``--runs`` names; before anything is played it is seen to be writable.

    Errors:  UserError where it is not.
    """
    local = Path(on_this_machine(runs))
    if not is_uri(local):
        check_writable(local)
        yield RunsPlace(local, None)
        return
    place = opened(uri_of(runs))
    place.check_writable()
    with temporary_folder("runs") as own:  # locked, as the folder of runs is while one is put there
        folder = own.path / "runs"
        check_writable(folder)
        yield RunsPlace(folder, place)
