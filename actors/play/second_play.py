"""A second play of a scenario, in another process and under another hash seed.

Within one process an order that hangs on hashes is the same each time, so that only another process
shows it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import TracebackType
from typing import Self

from minicluster.errors import MiniclusterError
from minicluster.scenario import Scenario

PROGRAM = "minicluster.actors.play.other_process"
HASH_SEEDS = ("4711", "1147")


class SecondPlay:
    """A process that plays a scenario while this one does."""

    def __init__(self, scenario: Scenario) -> None:
        mine = os.environ.get("PYTHONHASHSEED")
        [other, *_] = [seed for seed in HASH_SEEDS if seed != mine]
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": other, "PYTHONPATH": path},
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(scenario.to_dict()))
        self._process.stdin.close()
        self._process.stdin = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def trace_hash(self) -> str:
        """The hash, once the scenario has ended.

        Errors:  MiniclusterError where the process did not come to the end.
        """
        out, complaints = self._process.communicate()
        if self._process.returncode != 0:
            last = (complaints.strip().splitlines() or ["no reason given"])[-1]
            raise MiniclusterError(f"the second play, in another process, ended early: {last}")
        return out.strip()
