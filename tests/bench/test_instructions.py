"""A start, an idle and a loaded second cost what they did at a recorded commit, or less.

Five per cent may come together. Both commits are measured here, by one interpreter. Where a rise is
wanted, ``counting.py`` gets a new ``BASE``.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.instructions.counting import (
    BASE,
    ROOT,
    culprit,
    has,
    lacking,
    millions,
    of_commit,
    risen,
)


def test_no_commit_since_the_base_has_made_a_cluster_dearer(benchmark: Any) -> None:
    if why := lacking():
        pytest.skip(why)
    if not has(BASE):
        pytest.skip(f"the commit {BASE} that this one is compared with is not in this clone")
    base, now = of_commit(BASE), dict[str, float]()
    benchmark.pedantic(lambda: now.update(millions(ROOT)), rounds=1)
    benchmark.extra_info["millions"] = {name: round(cost, 1) for name, cost in now.items()}
    dearer = risen(base, now)
    if dearer:
        name = dearer[0].partition(":")[0]
        dearer.append(f"most of {name} since {culprit(BASE, name, base[name], now[name])}")
    assert not dearer, "\n".join(dearer)
