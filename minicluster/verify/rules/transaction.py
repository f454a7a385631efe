"""Rules over the metadata transactions of a log (KIP-868)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule

VIEW = """
select *, cast(null as string) as topic, cast(null as int) as part,
  lag(kind) over (partition by run order by offset) as p_kind
from transactions
"""

RULES = (
    Rule(
        id="E30",
        title="Metadata transactions nest properly",
        statement="A transaction begins where none is open, and ends or is aborted where one is.",
        source="KIP-868; OffsetControlManager, MetadataBatchLoader.replay",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="transaction",
                when="true",
                bad="(kind = 'Begin') = (coalesce(p_kind, 'End') = 'Begin')",
                message="a metadata transaction begins inside another, or ends where none is open",
            ),
        ),
    ),
)
