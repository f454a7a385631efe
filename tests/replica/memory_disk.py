"""A node's disk in memory, for tests that drive the machines by hand."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from minicluster.log import Log


@dataclass(slots=True, kw_only=True)
class MemoryDisk:
    """Directories, logs and files, which outlive an incarnation of a broker."""

    directory_ids: tuple[uuid.UUID, ...] = ()
    logs: dict[str, Log] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
