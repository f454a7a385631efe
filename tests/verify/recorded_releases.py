"""Runs of three combined nodes of each minor release (tests/data/kafka-logs-by-release)."""

from __future__ import annotations

import tarfile
from pathlib import Path

ARCHIVES = Path(__file__).parents[1] / "data" / "kafka-logs-by-release"
RELEASES = sorted(
    (path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz")),
    key=lambda name: [int(part) for part in name.split(".")],
)


def unpacked(release: str, folder: Path) -> Path:
    """The logs of a release, as its nodes left them."""
    path = folder / release
    with tarfile.open(ARCHIVES / f"{release}.tar.xz") as archive:
        archive.extractall(path, filter="data")
    return path
