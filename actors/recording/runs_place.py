"""The place of a command's runs: a folder of this machine's, or one on another file system."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minicluster.actors.recording.run_place import check_writable, files_in, scenario_in
from minicluster.log.locating import RUN_NAME
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
    """The folder into which runs are written, and from there to the place that ``--runs`` names.

    **Invariant:** a run replaces an earlier one of its scenario, and nothing else, there as in a
    folder (tests/verify/test_file_systems.py).
    """

    def __init__(self, folder: Path, place: Place | None) -> None:
        self.folder = folder
        self._place = place
        self._uris: dict[Path, str] = {}  # of the runs here that were published

    def publish(self, run: Path) -> str:
        """Let a run folder, or a file, be at the place.

        Shapes:  -> the path or URI at which others find it.
        Errors:  Unreachable.
        """
        if self._place is None:
            return str(run)
        if run not in self._uris:
            self._uris[run] = self._free(run)
        uri = self._uris[run]
        place = opened(uri)
        if run.is_dir():
            self._remove_before(place, run)
        place.send(run)
        return uri

    def beside(self, run: Path) -> str | None:
        """The URI that a published run lacks, since another scenario's run has it."""
        usual = self._usual(run)
        return None if usual == self._uris.get(run, usual) else usual

    def uri(self, file: Path) -> str:
        """The URI at which others find a file of the folder."""
        usual = self._usual(file)
        if usual is None:
            return file.resolve().as_uri()
        for run, uri in self._uris.items():
            if file.is_relative_to(run) and file != run:
                return below(uri, file.relative_to(run).as_posix())
        return usual

    def _usual(self, file: Path) -> str | None:
        if self._place is None:
            return None
        return below(self._place.uri, file.relative_to(self.folder).as_posix())

    def _free(self, run: Path) -> str:
        """The usual URI, or where another run lies at it, the same with a number."""
        usual = uri = str(self._usual(run))
        if not run.is_dir():
            return usual
        scenario = scenario_in((run / RUN_NAME).read_bytes())
        for number in itertools.count(2):
            header = opened(below(uri, RUN_NAME)).content()
            if header is None or scenario == scenario_in(header) is not None:
                return uri
            path, mark, options = usual.partition("?")
            uri = f"{path}-{number}{mark}{options}"
        raise AssertionError  # never: numbers do not end

    def _remove_before(self, place: Place, run: Path) -> None:
        """Remove the header of the run before, and what the new one does not replace."""
        header = opened(below(place.uri, RUN_NAME)).content()
        if header is not None:
            new = files_in((run / RUN_NAME).read_bytes())
            place.remove({RUN_NAME} | (files_in(header) - new))


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
