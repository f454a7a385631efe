"""The story of each planted fault, and the rule that must find it.

A story is also played without a fault, and must then be valid and go as it is written.
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
    ("Z04", "tests/zoo/lossy_restart", "F14 B3"),
    ("Z05", "examples/fenced_follower", "A3 E17"),
    ("Z06", "tests/zoo/session", "A8"),
    ("Z07", "tests/zoo/last_known", "A2"),
    ("Z08", "tests/zoo/shutdown", "E36"),
    ("Z09", "tests/zoo/shutdown", "E36"),
    ("Z11", "tests/zoo/amended", "E22"),
    ("Z12", "tests/zoo/amended", "E22"),
    ("Z14", "tests/zoo/failed_dir", "E27"),
    ("Z15", "tests/zoo/both_orders", "B6"),
    ("Z17", "tests/zoo/both_orders", "B7"),
    ("Z18", "tests/zoo/stopped_follower", "B8"),
    ("Z32", "tests/zoo/resumed", "E05"),
    ("Z34", "tests/zoo/cut_off_leader", "E47"),
    ("Z36", "tests/zoo/quick_elections", "F4 B2"),
    ("Z38", "tests/zoo/dark_leader", "F15"),
    ("Z40", "tests/zoo/under_min", "B10"),
    ("Z41", "tests/zoo/moved_away", "E11"),
    ("Z42", "tests/zoo/away", "E32"),
    ("Z44", "tests/zoo/recreated", "E27"),
    ("Z45", "tests/zoo/recreated", "E37"),
    ("Z47", "tests/zoo/lost_leader", "C7"),
    ("Z48", "tests/zoo/members", "F7"),
    ("Z50", "tests/zoo/begins", "E33"),
    ("Z52", "tests/zoo/elr_cleared", "E41"),
    ("Z53", "tests/zoo/elr_emptied", "E41"),
    ("Z54", "tests/zoo/elr_emptied", "E12"),
    ("Z56", "tests/zoo/moved_away", "E13"),
    ("Z57", "tests/zoo/late_voter", "E42"),
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
    ("S19", "examples/unclean_recovery", "E32"),
    ("S23", "tests/zoo/lagging_voter", "E07"),
    ("S26", "examples/controlled_shutdown", "E40"),
    ("S27", "tests/zoo/recreated", "E25"),
    ("S29", "tests/zoo/last_member", "E14"),
    ("S30", "tests/zoo/leads_again", "F5"),
    ("S31", "tests/zoo/bank", "F6"),
    ("S32", "tests/zoo/stopped_follower", "F8"),
    ("S33", "tests/zoo/failed_dir", "D1"),
    ("S34", "tests/zoo/sent_again", "H8 F11"),
    ("S37", "tests/zoo/restarts_empty", "B3"),
    ("S38", "tests/zoo/restarted", "E20"),
    ("S41", "tests/zoo/bank", "H5"),
    ("S42", "tests/zoo/bank", "H3"),
    ("S43", "tests/zoo/bank", "H4"),
    ("S44", "tests/zoo/bank", "H5"),
    ("S45", "tests/zoo/bank", "H6"),
    ("S46", "tests/zoo/bank", "H6"),
    ("S47", "tests/zoo/bank", "H7"),
    ("S48", "tests/zoo/bank", "H3"),
    ("S49", "tests/zoo/members", "F12"),
    ("S51", "tests/zoo/members", "H1"),
    ("S52", "tests/zoo/members", "H2"),
    ("S53", "tests/zoo/members", "F10"),
    ("S54", "tests/zoo/transforms", "H1 H9"),
    ("S55", "tests/zoo/failed_dir", "D6"),
    ("S56", "tests/zoo/stopped_follower", "B2"),
    ("S57", "tests/zoo/handed_over", "G10"),
    ("S58", "tests/zoo/handed_over", "G12"),
    ("S59", "tests/zoo/trickle", "E06"),
    ("S61", "tests/zoo/trickle", "E36"),
    ("S62", "tests/zoo/trickle", "G8"),
    ("S63", "tests/zoo/seldom", "G3"),
    ("S64", "tests/zoo/lost_response", "G4"),
    ("S65", "tests/zoo/back_again", "G5"),
    ("S66", "tests/zoo/back_again", "G6"),
    ("S67", "tests/zoo/back_again", "G7"),
    ("S68", "tests/zoo/back_again", "G1"),
    ("S70", "tests/zoo/at_rest", "G9"),
    ("S71", "tests/zoo/at_rest", "G11"),
    ("S72", "tests/zoo/forgotten_log", "E46"),
    ("S73", "tests/zoo/trickle", "G8"),
    ("S74", "tests/zoo/same_name", "F1"),
)
EXAMPLES = tuple(f"examples/{path.stem}" for path in sorted(ROOT.glob("examples/*.yaml")))
STORIES = tuple(dict.fromkeys((*EXAMPLES, *(plant.story for plant in PLANTS))))

# A fault that never acts in its story: such a run proves nothing.
NEVER_HIT = Plant("Z05", "tests/zoo/amended", ())

# Faults that only a machine shows: the rule that it breaks, and the reason why no run can.
OF_ZOOKEEPER = "the rules of ZooKeeper's log judge it, step by step on a server without actors"
MACHINES = {
    "Z58": ("E42", "the test sets the contents of the follower's tail and the leader's snapshot"),
    "Z60": ("E42 F1", "it takes DeleteRecords, which no client here sends"),
    "S16": ("D4", "replaying refuses an old epoch, so what is decided never reaches a log"),
    "S22": ("E04", "a voter gets two vote requests in one epoch, before and after a restart"),
    "Z51": ("K9", OF_ZOOKEEPER),
    "Y01": ("K2", OF_ZOOKEEPER),
    "Y02": ("K10", OF_ZOOKEEPER),
    "Y03": ("K11", OF_ZOOKEEPER),
    "Y04": ("K13", OF_ZOOKEEPER),
    "Y05": ("K3", OF_ZOOKEEPER),
    "Y06": ("K5", OF_ZOOKEEPER),
    "Y07": ("K12", OF_ZOOKEEPER),
    "Y08": ("K7", OF_ZOOKEEPER),
}

# Faults that are known from elsewhere and have no switch, each with the reason.
LEFT_OUT = {
    "Z46": (
        "KAFKA-13959: a broker is unfenced only once it has read to the end of the log",
        "G1 is judged where a run goes on after its last disturbance; E24 states the conditions of "
        "unfencing",
    ),
    "S36": (
        "a leader counts a follower's time from the arrival of its fetch, so that the ISR flaps",
        "G11 is judged where a run goes on after its last disturbance; E14 and F14 state what each "
        "change must be",
    ),
}
