"""Per log rule: the hand-written logs that break it, and the near misses that do not."""

from __future__ import annotations

from tests.verify import cases_lifecycles, cases_operations, cases_partitions
from tests.verify.build import Case

BAD: dict[str, tuple[Case, ...]] = {
    **cases_partitions.BAD,
    **cases_lifecycles.BAD,
    **cases_operations.BAD,
}
NEAR: dict[str, tuple[Case, ...]] = {
    **cases_partitions.NEAR,
    **cases_lifecycles.NEAR,
    **cases_operations.NEAR,
}
