"""E42 over generated requests: nothing is ever raised."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicluster.controller.controller_apis import CONTROLLER_APIS
from minicluster.controller.machine import ControllerMachine
from minicluster.protocol import messages as m
from minicluster.protocol.schema import FieldSpec, Struct
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.rules import Rules
from tests.controller.kit import CLUSTER_ID, Cluster, dir_id, incarnation

UNHURRIED = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


NAMES = st.sampled_from(["foo", "bar", "baz.qux", "baz_qux", "", "a/b", "__cluster_metadata"])
IDS = st.sampled_from([ZERO_UUID, UUID(int=1), UUID(int=2), UUID(int=3 << 64), UUID(int=99)])
DIRS = [dir_id(b, n) for b in range(3) for n in range(2)]
TEXTS = st.sampled_from(
    [CLUSTER_ID, "min.insync.replicas", "unclean.leader.election.enable", "true", "2", "0", "x"]
)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "string": TEXTS,
    "uuid": st.one_of(IDS, st.sampled_from(DIRS), st.builds(incarnation, st.integers(0, 3))),
}
NUMBERS = st.one_of(st.integers(-2, 8), st.sampled_from([30, 31, 127, -128]))


def of_field(spec: FieldSpec) -> st.SearchStrategy[Any]:
    """Values for a field: few and near to what exists, so that they often fit together."""
    kind = spec.element
    if spec.entity == "topicName":
        values: st.SearchStrategy[Any] = NAMES
    elif spec.entity == "brokerId":
        values = st.integers(-1, 5)
    elif kind == "struct" or spec.struct is not None:
        assert spec.struct is not None
        values = of_struct(spec.struct)
    else:
        values = PLAIN.get(kind, NUMBERS)
    if spec.type_ == "array":
        values = st.lists(values, max_size=3).map(tuple)
    return st.one_of(st.none(), values) if spec.nullable else values


def of_struct(cls: type[Struct]) -> st.SearchStrategy[Any]:
    """Any instance of a message or of a part of one."""
    return st.builds(cls, **{spec.name: of_field(spec) for spec in cls.schema})


REQUESTS = st.one_of([of_struct(cls) for cls in CONTROLLER_APIS])


def fitted(cluster: Cluster, request: Any) -> Any:
    """A request with the broker's real epoch more often than chance would give it."""
    from minicluster.values import replace

    if hasattr(request, "broker_epoch") and request.broker_epoch % 2 == 0:
        request = replace(request, broker_epoch=cluster.epoch(request.broker_id))
    if isinstance(request, m.BrokerRegistrationRequest):
        feature = request.Feature(
            name="metadata.version", min_supported_version=1, max_supported_version=31
        )
        request = replace(request, cluster_id=CLUSTER_ID, features=(feature,))
    return request


@UNHURRIED
@given(
    st.sampled_from([(Rules.KAFKA_4_3, "4.3-IV0", True), (Rules.KAFKA_3_9, "3.9-IV0", False)]),
    st.lists(st.tuples(REQUESTS, st.integers(0, 3), st.integers(0, 20_000)), max_size=12),
)
def test_E42_whatever_is_requested_nothing_is_raised_and_each_request_has_one_response(
    release: tuple[Rules, str, bool], requested: list[tuple[Any, int, int]]
) -> None:
    rules, metadata_version, elr = release
    cluster = Cluster(rules=rules, metadata_version=metadata_version, elr=elr)
    for broker_id in range(3):
        cluster.start(broker_id, dirs=(dir_id(broker_id, 0), dir_id(broker_id, 1)))
    cluster.create("foo", (0, 1, 2), (1, 2, 0))
    cluster.create("bar", (2,), configs={"min.insync.replicas": "2"})
    for request, version, wait_ms in requested:
        cluster.run(cluster.now_ms + wait_ms)
        token = cluster.send(fitted(cluster, request), version)
        assert token in cluster.responses
        machine: ControllerMachine = cluster.machine
        assert machine.state.check_indexes() == ()
        assert machine.committed_image == machine.image
        if not machine.is_active:  # an unreadable listener is the one thing that does this
            registers = (m.BrokerRegistrationRequest, m.ControllerRegistrationRequest)
            assert isinstance(request, registers)
            cluster.take(machine.on_claim(2, cluster.end, cluster.now_ms))
