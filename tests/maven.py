"""Jars from Maven Central in cache folders, for tests that start Java programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NO_MAVEN = 69


def cache_folder(name: str) -> Path:
    """The folder of some jars, whether it is there or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "minicluster" / name


def copy_jars(
    pom: Path, folder: Path, artifacts: Sequence[str] = (), options: Sequence[str] = ()
) -> int:
    """Copy the dependencies of a pom into a folder, all of them or the named ones.

    Errors:  an exit code and one line where there is no Maven.
    """
    maven = shutil.which("mvn")
    if maven is None:
        print("fetch: Maven (mvn) is not on the path", file=sys.stderr)
        return NO_MAVEN
    subprocess.run(
        [
            maven,
            "--quiet",
            "--batch-mode",
            f"--file={pom}",
            "dependency:copy-dependencies",
            f"-DoutputDirectory={folder}",
            *([f"-DincludeArtifactIds={','.join(artifacts)}"] if artifacts else ()),
            *options,
        ],
        check=True,
    )
    return 0
