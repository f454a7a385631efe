"""``python -m tests.apps fetch``: the software of these tests, each part that this machine can."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.apps.programs import (
    FRANZ_GO,
    KAFKA,
    KAFKAJS,
    fetch_franz_go,
    fetch_jars,
    fetch_kafkajs,
)

PARTS = {
    f"Apache Kafka {KAFKA}": fetch_jars,
    f"franz-go {FRANZ_GO}": fetch_franz_go,
    f"KafkaJS {KAFKAJS}": fetch_kafkajs,
}


def main(args: Sequence[str]) -> int:
    """Exit code 0 even where a part is missing: its tests are skipped."""
    if list(args) != ["fetch"]:
        print("usage: python -m tests.apps fetch", file=sys.stderr)
        return 64
    for name, fetch in PARTS.items():
        why = fetch()
        print(f"{name}: {why or 'is here'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
