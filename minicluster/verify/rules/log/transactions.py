"""Metadata transactions (KIP-868)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

_STATES = """
select *, cast(null as string) as topic, cast(null as int) as part,
  lag(kind) over (partition by run order by offset) as p_kind
from transactions
"""


VIEWS = (View(name="transaction_states", sql=_STATES, empty_unless=("transactions", None, None)),)

RULES = (
    Rule(
        id="E30",
        title="Metadata transactions do not nest",
        statement="A metadata transaction begins where none is open, and ends or is aborted "
        "where one is open.",
        source="KIP-868; OffsetControlManager, MetadataBatchLoader.replay",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="transaction_states",
                when="true",
                bad="(kind = 'Begin') = (coalesce(p_kind, 'End') = 'Begin')",
                message="a metadata transaction begins inside another one, or ends where "
                "none is open",
            ),
        ),
    ),
)
