"""The clock of threads: it follows the machine's, and leaves out what the machine did not run."""

from __future__ import annotations

from minicluster.actors.runtime.wall_clock import LATE_MAX_S, WallClock


class Machine:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_it_follows_the_machine_while_it_is_read() -> None:
    machine = Machine()
    clock = WallClock(machine)
    for _ in range(8):
        machine.now_s += LATE_MAX_S
        assert clock.read_s() == machine.now_s


def test_a_stall_is_a_short_while_and_time_goes_on_after_it() -> None:
    machine = Machine()
    clock = WallClock(machine)
    began_s = clock.read_s()
    machine.now_s += 3_600
    assert clock.read_s() == began_s + LATE_MAX_S
    machine.now_s += LATE_MAX_S
    assert clock.read_s() == began_s + 2 * LATE_MAX_S
