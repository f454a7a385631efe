"""Evidence that stays on disk, so that another judge gets the very same.

``index.json`` has the path of each subject's evidence below the folder, ``live.json`` the cases of
the checkers of running clusters; both by ``kind/subject``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.judgements.evidence import Evidence, Subject

FREE_BYTES_MIN = 15 << 30


class Kept:
    """A folder of evidence.

    Shapes:  is_temporary: evidence goes as soon as it was judged.
    """

    def __init__(self, folder: Path, *, is_temporary: bool = False) -> None:
        self.folder = folder
        self.is_temporary = is_temporary

    def of_kind(self, kind: str) -> dict[str, Evidence]:
        """The evidence of a kind that is there, by subject."""
        live = self._read("live.json")
        found: dict[str, Evidence] = {}
        for name, path in self._read("index.json").items():
            of, _, subject = name.partition("/")
            if of == kind:
                found[subject] = Evidence(self.folder / path, live.get(name))
        return found

    def made(self, kind: str, name: str, subject: Subject) -> Evidence:
        """The evidence of a subject, made and listed.

        Errors:  OSError where the disk is nearly full.
        """
        if shutil.disk_usage(self.folder).free < FREE_BYTES_MIN:
            raise OSError(f"{self.folder}: less than {FREE_BYTES_MIN >> 30} GiB are free")
        place = self.folder / kind / name.replace("/", "_").replace(" ", "_")
        shutil.rmtree(place, ignore_errors=True)  # of a play that was interrupted
        place.mkdir(parents=True)
        evidence = subject(place)
        if evidence.live is not None:
            self._note("live.json", f"{kind}/{name}", evidence.live)
        self._note(
            "index.json", f"{kind}/{name}", evidence.path.relative_to(self.folder).as_posix()
        )
        return evidence

    def done_with(self, kind: str) -> None:
        """Everything of a kind was judged that is there."""
        if self.is_temporary:
            shutil.rmtree(self.folder / kind, ignore_errors=True)

    def _read(self, file: str) -> dict[str, Any]:
        path = self.folder / file
        return json.loads(path.read_text()) if path.exists() else {}

    def _note(self, file: str, name: str, value: object) -> None:
        """Add to an index, which other processes may read or add to."""
        path = self.folder / file
        with (self.folder / ".lock").open("w") as lock:
            flock(lock, LOCK_EX)
            content = {**self._read(file), name: value}
            path.with_suffix(".new").write_text(json.dumps(content, indent=1))
            path.with_suffix(".new").replace(path)


@contextmanager
def kept_in(folder: Path | None) -> Iterator[Kept]:
    """Evidence in a folder, or in a temporary one."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield Kept(folder.resolve())
        return
    with TemporaryDirectory(prefix="judgements-") as temporary:
        yield Kept(Path(temporary).resolve(), is_temporary=True)
