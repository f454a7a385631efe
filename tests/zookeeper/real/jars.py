"""Where ZooKeeper's jars are on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from tests.java import java
from tests.maven import cache_folder

VERSION = "3.8.4"  # of the recorded runs


def jars_folder() -> Path:
    """The folder of the jars, whether it is there or not."""
    named = os.environ.get("MINICLUSTER_ZOOKEEPER_JARS")
    return Path(named) if named else cache_folder(f"zookeeper-{VERSION}")


def missing() -> str | None:
    """The reason why ZooKeeper cannot run here, None if it can."""
    if java() is None:
        return "there is no Java on the path"
    if not (jars_folder() / f"zookeeper-{VERSION}.jar").exists():
        return f"no jars of ZooKeeper {VERSION}: python -m tests.zookeeper.real fetch"
    return None
