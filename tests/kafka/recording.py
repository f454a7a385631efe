"""Recordings of Kafka's own classes, for ``tests/transcripts``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write lines of JSON, compressed."""
    # Without a date, so that the same recording has the same bytes.
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
