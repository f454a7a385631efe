"""The clock of a node: the cluster's, unless it is skewed."""

from __future__ import annotations

from minicluster.actors.runtime.runtime import Runtime

USUAL_RATE = 1_000


class NodeClock:
    """The time that the machines and timers of one node go by, over all of its incarnations.

    **Invariant:** it never goes back, so no duration that a machine measures is negative.

    Units:  rate: thousandths of the cluster's clock.
    Source: TigerBeetle's TimeSim; Jepsen's clock nemesis.
    """

    __slots__ = ("_from_ms", "_rt", "_since_ms", "is_true", "rate")

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self.is_true = True  # it has never been skewed
        self.rate = USUAL_RATE
        self._from_ms = self._since_ms = 0

    @property
    def drifts(self) -> bool:
        """True while it goes faster or slower than the cluster's."""
        return self.rate != USUAL_RATE

    @property
    def now_ms(self) -> int:
        """The time that it shows."""
        now_ms = self._rt.now_ms
        if self.is_true:
            return now_ms
        return self._from_ms + (now_ms - self._since_ms) * self.rate // USUAL_RATE

    def reached_ms(self, at_ms: int) -> int:
        """The cluster's time at which this clock, as it goes now, shows a time."""
        if self.is_true:
            return at_ms
        return self._since_ms + self.lasting_ms(at_ms - self._from_ms)

    def lasting_ms(self, duration_ms: int) -> int:
        """The cluster's duration of one that is measured by this clock."""
        return -(-duration_ms * USUAL_RATE // self.rate)

    def skew(self, ahead_ms: int, rate: int) -> None:
        """Jump ahead, and go at a rate from here on."""
        self._from_ms, self._since_ms = self.now_ms + ahead_ms, self._rt.now_ms
        self.rate, self.is_true = rate, False
