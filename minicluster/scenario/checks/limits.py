"""The most of everything: what lies above is rejected before anything is played.

Kafka has no such bounds. They keep a slip of the pen (a digit too many) from a run that fills the
memory or never ends; each is far above what a test needs.
"""

from __future__ import annotations

from minicluster.errors import UserError

BROKERS_MAX = 100  # broker ids end where controller ids begin
CONTROLLERS_MAX = 25
PARTITIONS_MAX = 9_999  # of one topic: with its own record, as many as Kafka writes at once
REPLICAS_MAX = BROKERS_MAX
MEMBERS_MAX = 100  # of one consume
RECORDS_MAX = 1_000_000  # of one produce
BATCH_MAX = 1_000  # records of one batch
RATE_MAX = 100_000  # records per second of one produce
DIRECTORIES_MAX = 100  # of one broker
SEED_MAX = OFFSET_MAX = 2**63 - 1
NAME_MAX = 200  # characters of a scenario's name
TEXT_MAX = 10_000  # characters of any other text
STEPS_MAX = 10_000
FILE_BYTES_MAX = 4 << 20  # of a scenario file
DIGITS_MAX = 40  # of a number
LEVELS_MAX = 32  # nested lists, mappings, parentheses
DRIFT_MIN, DRIFT_MAX = -0.9, 9  # beside a clock that goes right, at 0
PACE_MIN, PACE_MAX = 0.01, 1_000  # seconds of the cluster per second of the wall clock


def whole_number(value: object, name: str, low: int, high: int) -> int:
    """A whole number within its bounds.

    Errors:  UserError with the numbers that are allowed.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise UserError(f"{name}: {shown(value)} is not a whole number from {low} to {high}")
    return int(value)


def checked_pace(value: object) -> float:
    """The speed of a paced cluster's clock.

    Errors:  UserError with the numbers that are allowed.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not PACE_MIN <= value <= PACE_MAX:  # type: ignore[operator]
        raise UserError(
            f"pace: {shown(value)} is not a number from {PACE_MIN} to {PACE_MAX}; 1 is real time"
        )
    return float(value)  # type: ignore[arg-type]


def checked_text(value: str, name: str, longest: int = TEXT_MAX) -> str:
    """Text that can be written in UTF-8 and is not endless.

    Errors:  UserError for half of a surrogate pair, or too many characters.
    """
    if len(value) > longest:
        raise UserError(f"{name}: a text of {len(value)} characters; at most {longest} are allowed")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UserError(f"{name}: {value[:40]!a} holds half of a surrogate pair, which no text has")
    return value


def shown(value: object) -> str:
    """A value in an error: never long."""
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number of very many digits"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
