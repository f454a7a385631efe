"""The table of a soak: what the process takes, beside what its clients have stored by then."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = 4096
MEGABYTE = 1_000_000
ABOVE_STORED_MAX = 500 * MEGABYTE
HEADER = "     at       records   memory  stored  trace  dropped rows  wall"


def resident_bytes(pid: int | str = "self") -> int:
    """The memory of a process that is in use now (Linux)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One row; a run that cannot be looked into has no trace and no dropped rows.

    Units:   at_s: of the cluster; memory, stored, trace: bytes.
    """

    at_s: float
    records: int
    memory: int
    stored: int
    trace: int = 0
    dropped: int = 0


class Table:
    """Samples as they come, each printed at once."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._began_s = time.monotonic()
        print(f"\n{HEADER}", flush=True)

    def add(self, sample: Sample) -> None:
        """Print a row."""
        self.samples.append(sample)
        hours, rest = divmod(int(sample.at_s), 3600)
        print(
            f"{hours:4}:{rest // 60:02}:{rest % 60:02} {sample.records:13,} "
            f"{sample.memory / MEGABYTE:5,.0f} MB {sample.stored / MEGABYTE:4,.0f} MB "
            f"{sample.trace / MEGABYTE:3,.0f} MB {sample.dropped:13,} "
            f"{time.monotonic() - self._began_s:5,.0f}s",
            flush=True,
        )

    def check(self) -> None:
        """No sample takes more than the bound beside what is stored, and it does not grow.

        The second half may take no more than the first did, but for a tenth: what grows with each
        request is more than that after hours.
        """
        worst = max(self.samples, key=lambda sample: sample.memory - sample.stored)
        assert worst.memory - worst.stored < ABOVE_STORED_MAX, worst
        above = [sample.memory - sample.stored for sample in self.samples]
        half = len(above) // 2
        assert max(above[half:]) < 1.1 * max(above[:half]), above
