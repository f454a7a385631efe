"""The ends of a command that serves: signals, and the death of its parent."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Stopped(BaseException):
    """The second signal, or one before anything served: end at once."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Signals:
    """The signals that end a serving cluster: one lets it save its run, two end it at once.

    A signal that is ignored when the process starts (SIGHUP under nohup) stays ignored.
    """

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None  # while something serves
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
        if not isinstance(error, Stopped):
            for number, before in self._before.items():
                signal.signal(number, signal.SIG_DFL if before is None else before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        stop, self.stop = self.stop, None
        if stop is None:
            for one in self._before:
                signal.signal(one, signal.SIG_IGN)  # a third one changes nothing
            raise Stopped(number)
        stop()


class Parent:
    """The process that started this one."""

    def __init__(self) -> None:
        self._pid = os.getppid()

    @property
    def ended(self) -> bool:
        """True once another process has taken this one over."""
        return os.getppid() != self._pid
