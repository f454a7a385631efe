"""The files and folders that the pages about the code name are there."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tests.house.sources import ROOT, sources
from tests.house.test_tidy import MAY_IMPORT

PAGE = (ROOT / "docs/design.md").read_text()


def test_every_file_of_the_walks_is_there() -> None:
    """A name without a folder lies beside the one before it, or in the same room."""
    walks = (ROOT / "docs/reference/walks.md").read_text()
    missing = []
    for row in re.findall(r"^\|.*`.*\|$", walks, re.MULTILINE):
        room = PurePosixPath()
        for name in re.findall(r"`([\w/.]+)`", row.split("|")[2]):
            places = [PurePosixPath(name), room / name, *(p / name for p in room.parents)]
            place = next((p for p in places if (ROOT / p).exists()), None)
            if place is None:
                missing.append(name)
            else:
                room = place.parent if place.suffix else place
    assert missing == []


def test_every_folder_of_the_rooms_is_there_and_named() -> None:
    rows = re.findall(r"^\| `([\w/]+)/?`.*\|(.*)\|$", PAGE, re.MULTILINE)
    rooms = {room.rstrip("/"): set(re.findall(r"`(\w+)/`", folders)) for room, folders in rows}
    there: dict[str, set[str]] = {room: set() for room in rooms}
    for path in sources():
        parts = path.relative_to(ROOT).parts
        size = 1 if parts[0] in ("actors", "fixtures") else 2
        if len(parts) > size + 1 and "/".join(parts[:size]) in there:
            there["/".join(parts[:size])].add(parts[size])
    assert {room: rooms[room] for room in there} == there


def test_the_rooms_lie_above_what_they_import() -> None:
    listed = re.findall(r"^\| `(?:minicluster/)?(\w+)/?`.*\|.*\|.*\|$", PAGE, re.MULTILINE)
    order = {room: place for place, room in enumerate(listed) if room in MAY_IMPORT}
    assert set(order) == set(MAY_IMPORT)
    upward = [
        f"{room} imports {below}"
        for room, rooms in MAY_IMPORT.items()
        for below in rooms
        if order[below] < order[room]
    ]
    assert upward == []
