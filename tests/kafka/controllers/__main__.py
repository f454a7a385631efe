"""``python -m tests.kafka.controllers``: seeds on both controllers; ends with 1 where any differs.

``--record FOLDER`` writes what Kafka's controller did, for ``tests/transcripts``.
"""

from __future__ import annotations

import sys

from minicluster.metadata.metadata_version import MetadataVersion
from tests.kafka.controllers.seeds import play
from tests.kafka.jars import EARLIER_VERSION, VERSION
from tests.kafka.side_by_side import SideBySide

main = SideBySide(
    name="controllers",
    about=__doc__,
    unit="operations",
    count=400,
    java_class="org.apache.kafka.controller.ControllerProgram",
    play=play,
    releases=(VERSION, EARLIER_VERSION),
    options={
        "--metadata-version": {"default": "4.3-IV0", "type": MetadataVersion.parse},
        "--elr": {"action": "store_true", "help": "with eligible leader replicas"},
        "--features": {"action": "store_true", "help": "with updates of features"},
        "--all": {"action": "store_true", "help": "play on after a difference"},
    },
)

if __name__ == "__main__":
    sys.exit(main())
