"""Which planted fault is played in which story, and which rule must find it.

A story is played without a fault, too, and must then be valid and go as it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Plant:
    """One fault in one story.

    Shapes:  primary: the rules of which one at least must be broken in the run.
    """

    zoo: str
    story: str
    primary: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The scenario's file."""
        return ROOT / f"{self.story}.yaml"


def _plants(*rows: tuple[str, str, str]) -> tuple[Plant, ...]:
    return tuple(Plant(zoo, story, tuple(primary.split())) for zoo, story, primary in rows)


PLANTS = _plants(
    ("Z01", "examples/fenced_follower", "A1 A3"),
    ("Z02", "tests/zoo/fenced_seen", "A5"),
    ("Z03", "tests/zoo/stale_incarnation", "A7"),
    ("Z04", "tests/zoo/lossy_restart", "B3"),
    ("Z05", "examples/fenced_follower", "A3 E17"),
    ("Z06", "tests/zoo/session", "A8"),
    ("Z08", "tests/zoo/shutdown", "E36"),
    ("Z09", "tests/zoo/shutdown", "E36"),
    ("Z11", "tests/zoo/amended", "E22"),
    ("Z12", "tests/zoo/amended", "E22"),
    ("Z14", "tests/zoo/failed_dir", "B3"),
    ("Z15", "tests/zoo/both_orders", "B6"),
    ("Z17", "tests/zoo/both_orders", "B7"),
    ("Z18", "tests/zoo/stopped_follower", "B8"),
    ("Z38", "tests/zoo/dark_leader", "F15"),
    ("Z40", "tests/zoo/under_min", "B10"),
    ("Z44", "tests/zoo/recreated", "E27"),
    ("Z45", "tests/zoo/recreated", "E37"),
    ("Z47", "tests/zoo/lost_leader", "C5"),
    ("Z52", "tests/zoo/elr_cleared", "E41"),
    ("Z53", "tests/zoo/elr_emptied", "E41"),
    ("Z54", "tests/zoo/elr_emptied", "E12"),
    ("S02", "tests/zoo/last_member", "E12"),
    ("S03", "tests/zoo/deposed_leader", "E15"),
    ("S04", "tests/zoo/removed_meanwhile", "B4"),
    ("S05", "tests/zoo/dark_leader", "B4"),
    ("S06", "tests/zoo/deposed_leader", "B4"),
    ("S09", "examples/unclean_recovery", "C1 C2"),
    ("S10", "tests/zoo/lost_leader", "C5"),
    ("S11", "examples/maximal_isr", "B1 B2"),
    ("S12", "tests/zoo/joining", "B2"),
    ("S13", "tests/zoo/leads_again", "B2"),
    ("S15", "tests/zoo/slow_heartbeat", "D3"),
    ("S17", "tests/zoo/shutdown", "A2"),
    ("S26", "examples/controlled_shutdown", "E40"),
    ("S27", "tests/zoo/recreated", "E25"),
    ("S29", "tests/zoo/last_member", "E14"),
    ("S30", "tests/zoo/leads_again", "F5"),
    ("S32", "tests/zoo/stopped_follower", "F8"),
    ("S33", "tests/zoo/failed_dir", "D1"),
    ("S38", "tests/zoo/restarted", "E20"),
)
STORIES = tuple(dict.fromkeys(plant.story for plant in PLANTS))

# A fault that is on in a story in which it never acts: such a run proves nothing.
NEVER_HIT = Plant("Z05", "tests/zoo/amended", ())
