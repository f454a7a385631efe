"""The conformance rows: cases gleaned from Kafka's own unit tests, by group and number."""

from __future__ import annotations

GROUPS = {
    "A": (
        "AlterPartition on the controller",
        "01-10 13-22 24-32",
    ),
    "B": (
        "partition changes",
        "01-09 12 15 17-19 22-28 30-39 41-43 45-47 49-51 53-55 58-63",
    ),
    "C": (
        "broker changes, elections, reassignments",
        "01 08-19 26-41 45-47 49-50",
    ),
    "D": (
        "topics, partitions, placement",
        "01-03 05-07 09-10 12 15-23 25-31",
    ),
    "E": (
        "registration and heartbeats",
        "01-04 06-10 12-14 16 18 20-29 32 36",
    ),
    "F": (
        "the broker's partition",
        "01-14 16 20-24 26-29 37 40",
    ),
    "G": (
        "the AlterPartition manager",
        "01-04 06-10",
    ),
    "H": (
        "metadata loading",
        "01-05 07-16 19",
    ),
    "I": (
        "the Raft quorum",
        "01-06 09-12 16-17 21-23 26-36 38-44 46 48 50 52-55 57-65 67-69 71-73 75 77 "
        "79-80 82-83 85b 85c 86-89 92-93",
    ),
    "J": (
        "wire and format",
        "02 05",
    ),
}
"""By letter: what the group is about, and its rows."""

LEFT_OUT = {
    "B63": "the election itself returns whether it is clean",
    "B36": "it needs useLastKnownLeader=false, which no release lets anybody set",
    "C17": "a heartbeat is decided when it arrives, so it has no deadline to miss",
}
"""Rows that no test is for, and why."""


def row_ids(group: str) -> list[str]:
    """The ids of a group's rows: A01, A02, …"""
    found = []
    for word in GROUPS[group][1].split():
        first, _, last = word.partition("-")
        if not last:
            found.append(group + word)
        else:
            found += [f"{group}{number:02}" for number in range(int(first), int(last) + 1)]
    return found
