"""``python -m tests.kafka.groups``: seeds on both coordinators; ends with 1 where any differs.

``--record FOLDER`` writes what Kafka's coordinator did, for ``tests/transcripts``.
"""

from __future__ import annotations

import sys

from tests.kafka.groups.seeds import play
from tests.kafka.side_by_side import SideBySide

main = SideBySide(
    name="groups",
    about=__doc__,
    unit="operations",
    count=400,
    java_class="org.apache.kafka.coordinator.group.GroupCoordinatorProgram",
    play=play,
)

if __name__ == "__main__":
    sys.exit(main())
