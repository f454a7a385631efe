"""The key of a control record.

Kafka declares it since 4.2 and writes it as ever: version and type, 16 bits each.

ControlRecordTypeSchema: Versions: 0, none flexible; Kafka 3.9 has none, Kafka 4.3 has 0.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(kind="data", versions="0", flexible="none")
class ControlRecordTypeSchema(s.Message):
    """Which kind of control record it is."""

    type: int = s.int16("0+", default=0)
