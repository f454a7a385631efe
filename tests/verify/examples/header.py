"""Examples of the rules in `header.py`."""

from __future__ import annotations

from minicluster.verify.header import (
    indexes_match_the_image,
    no_actor_crashes,
    the_same_seed_gives_the_same_run,
)
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.handwritten.run import RunBuilder, plain_run


@breaks(indexes_match_the_image)
def e41_bad() -> RunBuilder:
    """At the end of the run the indexes of controller 101 do not match its image."""
    return plain_run(stale_indexes=[101])


@keeps(indexes_match_the_image)
def e41_near() -> RunBuilder:
    """At the end of the run the indexes of every controller match its image."""
    return plain_run(stale_indexes=[])


@breaks(no_actor_crashes)
def e42_bad() -> RunBuilder:
    """Broker 1 raises a KeyError."""
    return plain_run(crashes=["broker-1: KeyError"])


@breaks(no_actor_crashes)
def e42_fault() -> RunBuilder:
    """Controller 101 resigns for a fault of its own."""
    return plain_run(controller_faults=["controller 101: it resigns from epoch 1: an index …"])


@keeps(no_actor_crashes)
def e42_near() -> RunBuilder:
    """Nobody crashes, and no controller meets a fault."""
    return plain_run(crashes=[], controller_faults=[])


@breaks(the_same_seed_gives_the_same_run)
def x1_bad() -> RunBuilder:
    """The run is repeated from its seed, and leaves another trace hash."""
    return plain_run(repeat_trace_hash="b")


@keeps(the_same_seed_gives_the_same_run)
def x1_near() -> RunBuilder:
    """The run is repeated from its seed, and leaves the same trace hash."""
    return plain_run(repeat_trace_hash="a")


@exempts(the_same_seed_gives_the_same_run)
def x1_near_intercepted() -> RunBuilder:
    """A function of the test saw requests in the first run, and the repeated one has another
    hash."""
    return plain_run(repeat_trace_hash="b", intercepted=["Produce"])
