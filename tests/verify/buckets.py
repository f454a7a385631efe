"""A bucket in a folder: the scheme ``bucket`` is one of Arrow's file systems for a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from minicluster.verify.evidence import file_systems


def put_bucket(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let ``bucket://path`` be a path in a folder."""
    folder.mkdir()
    usual = file_systems._opened
    system = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())

    def opened(uri: str, shown: str) -> tuple[Any, str] | None:
        scheme, _, path = uri.partition("://")
        return (system, path) if scheme == "bucket" else usual(uri, shown)

    patch.setattr(file_systems, "_opened", opened)
