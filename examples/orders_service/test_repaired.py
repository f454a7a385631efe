"""The same test of the repaired service: no seed finds anything."""

import pytest
import repaired
from test_service import test_every_order_is_stored as of_any_service


@pytest.mark.mini_cluster(controllers=1)
@pytest.mark.mini_cluster_explore(seeds=50, calm="40s")
async def test_every_order_is_stored_by_the_repaired_service(mini_cluster):
    await of_any_service(mini_cluster, repaired.main)
