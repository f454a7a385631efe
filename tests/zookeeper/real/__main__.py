"""``python -m tests.zookeeper.real fetch``: ZooKeeper's jars, from Maven Central into a cache."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.maven import copy_jars
from tests.zookeeper.real.jars import jars_folder, missing


def main(args: Sequence[str]) -> int:
    """Fetch the jars unless they are there."""
    if list(args) != ["fetch"]:
        print("usage: python -m tests.zookeeper.real fetch", file=sys.stderr)
        return 64
    failed = copy_jars(Path(__file__).with_name("pom.xml"), jars_folder())
    if failed:
        return failed
    why = missing()
    print(f"{jars_folder()}: {why or 'ZooKeeper is here'}")
    return 0 if why is None else 69


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
