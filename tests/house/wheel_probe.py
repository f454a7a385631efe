"""Run inside an environment that holds only the wheel: is everything there, and does it work?"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import importlib.util

import minicluster
import minicluster.actors.cluster.mini_cluster
import minicluster.fixtures.plugin
import minicluster.verify.live
from minicluster import MiniCluster


def main() -> None:
    """Play a tiny cluster from the installed wheel."""
    assert importlib.util.find_spec("fixtures") is None, "the wheel installs a top-level fixtures"
    assert importlib.util.find_spec("actors") is None, "the wheel installs a top-level actors"
    assert importlib.util.find_spec("pyspark_kraft") is not None, "Spark finds the format by it"
    scripts = {e.name for e in importlib.metadata.entry_points(group="console_scripts")}
    assert "minicluster" in scripts
    plugins = {e.name for e in importlib.metadata.entry_points(group="pytest11")}
    assert "minicluster" in plugins
    reporting = ("page.css", "templates/page.html")
    for name in ("py.typed", *(f"verify/reporting/{name}" for name in reporting)):
        assert importlib.resources.files("minicluster").joinpath(name).is_file(), name
    with MiniCluster(brokers=3, controllers=1, seed=1) as cluster:
        topic = cluster.create_topic("orders", partitions=1, replicas=3)
        cluster.wait_until(topic[0].fully_in_sync, within="30s")
    print(f"wheel works: minicluster {minicluster.__version__} at {minicluster.__file__}")


if __name__ == "__main__":
    main()
