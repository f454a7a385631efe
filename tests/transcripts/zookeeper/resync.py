"""After a difference: a machine whose context is what the recorded znodes have, so that one
difference does not make many.
"""

from __future__ import annotations

from minicluster.zookeeper.controller.partition_states import initialize_partition_states
from minicluster.zookeeper.controller.znode_access import read_known_states
from tests.transcripts.zookeeper.controllers import Controller, machine_of
from tests.transcripts.zookeeper.recording import Recording


def resynchronise(controller: Controller, recording: Recording, now_ms: int) -> None:
    """Give up the event, and read leaders and ISRs again."""
    old = controller.machine.state
    machine = machine_of(recording, controller.broker, old.new_topic_id)
    state = machine.state
    state.context, state.active_controller = old.context, old.active_controller
    state.watched_nodes, state.watched_children = old.watched_nodes, old.watched_children
    state.queue = old.queue
    controller.machine, controller.requested, controller.results = machine, [], {}
    process = read_known_states(state, state.context.partitions())
    try:
        requests = next(process)
        process.send(tuple(controller._znodes.read(one, controller.session) for one in requests))  # type: ignore[arg-type]
    except StopIteration as ended:
        state.context.leaderships.update(ended.value)
    initialize_partition_states(state)
