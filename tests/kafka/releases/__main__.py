"""``python -m tests.kafka.releases VERSION…``: record a short run of each release.

The jars of a release come from Maven Central first, unless they are there. Written are the metadata
logs of three combined nodes, as ``tests/data/kafka-logs-by-release/VERSION.tar.xz``.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.kafka.jars import release_folder, release_missing
from tests.kafka.releases.playing import FROM, play
from tests.maven import copy_jars

POM = Path(__file__).parents[1] / "release-pom.xml"
DATA = Path(__file__).parents[2] / "data" / "kafka-logs-by-release"
LOG = "__cluster_metadata-0"
WITHOUT = (".index", ".timeindex", ".txnindex", ".snapshot", ".deleted")


def main(versions: Sequence[str]) -> int:
    """Record the releases one after another."""
    unknown = [version for version in versions if version not in FROM]
    if unknown or not versions:
        print(f"usage: python -m tests.kafka.releases {' '.join(FROM)}", file=sys.stderr)
        return 64
    for version in versions:
        if release_missing(version):
            given = [f"-Dkafka.version={version}"]
            failed = copy_jars(POM, release_folder(version), options=given)
            if failed:
                return failed
        with tempfile.TemporaryDirectory() as folder:
            play(version, release_folder(version), Path(folder))
            pack(Path(folder), DATA / f"{version}.tar.xz")
        print(f"{version}: {(DATA / f'{version}.tar.xz').stat().st_size} bytes")
    return 0


def pack(run: Path, archive: Path) -> None:
    """The log of each node as it left it, without indexes."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz") as packed:
        for path in sorted(run.glob(f"*/data/{LOG}/*")):
            if path.suffix not in WITHOUT:
                name = f"controller-{path.parts[-4]}/{LOG}/{path.name}"
                packed.add(path, name, filter=_anybodys)


def _anybodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
