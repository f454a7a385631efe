"""The ends of a command that serves: signals, and the death of its parent."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from minicluster.own_folders import remove_all

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Signals:
    """The signals that end a serving cluster: one lets it save its run, two end it at once.

    So does one before anything serves. The process then ends in the handler: an exception would be
    lost where the signal meets a destructor, and be held up by all that is closed on its way.
    A signal that is ignored when the process starts (SIGHUP under nohup) stays ignored.

    Shapes:  run: the folder that is left once it is whole. at_end: calls that leave nothing behind.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.stop: Callable[[], None] | None = None  # while something serves
        self.at_end: list[Callable[[], None]] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        stop, self.stop = self.stop, None
        if stop is not None:
            stop()
            return
        for signal_number in self._before:
            signal.signal(signal_number, signal.SIG_IGN)  # a third one changes nothing
        for call in self.at_end:
            call()
        remove_all()
        left = f"the run folder is {self.run}" if self.run.exists() else "there is no run folder"
        text = f"minicluster: stopped by {signal.Signals(number).name}; {left}\n"
        with contextlib.suppress(OSError):  # a closed pipe; buffers may be half full, so past them
            if os.isatty(2):
                text = f"\r\x1b[K\x1b[?25h{text}"  # of the line of progress, which hides the cursor
            os.write(2, text.encode())
        os._exit(128 + number)


class Parent:
    """The process that started this one."""

    def __init__(self) -> None:
        self._pid = os.getppid()

    @property
    def ended(self) -> bool:
        """True once another process has taken this one over."""
        return os.getppid() != self._pid
