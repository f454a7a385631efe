"""The part of IncrementalAlterConfigs that a broker does itself.

Source:  ConfigAdminManager.preprocess, reassembleIncrementalResponse.
"""

from __future__ import annotations

import pytest

from minicluster.broker.api_state import ApiState, KafkaApisConfig
from minicluster.broker.requests.alter_configs import preprocess
from minicluster.metadata.image.configs import BROKER, BROKER_LOGGER, GROUP, TOPIC
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from minicluster.rules import Rules

Request = IncrementalAlterConfigsRequest
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
Change = tuple[str, int, str]


def resource(kind: int, name: str, *changes: Change) -> Request.AlterConfigsResource:
    return Request.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            Request.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ),
    )


def state(rules: Rules = Rules.KAFKA_4_3) -> ApiState:
    return ApiState(KafkaApisConfig(broker_id=1, cluster_id="a-cluster", rules=rules))


def test_results_of_the_controller_are_found_by_their_resource() -> None:
    """The order of the controller's response counts for nothing, and one may be missing."""
    names = ("a", "b", "c")
    request = Request(resources=(resource(9, "x"), *(resource(TOPIC, name) for name in names)))
    preprocessed = preprocess(state(), request)
    assert [r.resource_name for r in preprocessed.request.resources] == list(names)
    found = tuple(
        Result(error_code=code, error_message=None, resource_type=TOPIC, resource_name=name)
        for name, code in (("c", 3), ("a", 0))
    )
    whole = preprocessed.whole_response(IncrementalAlterConfigsResponse(responses=found))
    assert [(r.resource_name, r.error_code) for r in whole.responses] == [
        ("x", ErrorCode.INVALID_REQUEST),
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


REFUSED = [
    (
        resource(BROKER_LOGGER, "2", ("root", 0, "INFO")),
        "Unexpected node id. Expected 1, but received 2",
    ),
    (
        resource(BROKER_LOGGER, "1", ("root", 1, "")),
        "Removing the log level of the root logger is not allowed",
    ),
    (
        resource(BROKER_LOGGER, "1", ("root", 0, "LOUD")),
        "Cannot set the log level of root to LOUD as it is not a supported log level. "
        "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
    ),
    (resource(BROKER_LOGGER, "1", ("no.such.logger", 4, "INFO")), None),  # a null pointer
    (resource(BROKER, "1_0"), "Node id must be an integer, but it is: 1_0"),
    (
        resource(BROKER, "1", ("log.dir", 2, "/x"), ("log.dirs", 7, "/y")),
        "Unknown operations type 7",
    ),
    (
        resource(BROKER, "1", ("cordoned.log.dirs", 0, "/x,/tmp/kafka-logs")),
        "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or "
        "log.dir. Missing entries : /x",
    ),
    (
        resource(BROKER, "1", ("cordoned.log.dirs", 0, "*,/tmp/kafka-logs")),
        "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values",
    ),
]


@pytest.mark.parametrize(("refused", "message"), REFUSED)
def test_the_first_check_that_fails_names_the_error(
    refused: Request.AlterConfigsResource, message: str | None
) -> None:
    preprocessed = preprocess(state(), Request(resources=(refused,)))
    (result,) = preprocessed.whole_response(None).responses
    assert result.error_message == message


@pytest.mark.parametrize("release", [Rules.KAFKA_4_3, Rules.KAFKA_3_9])
def test_groups_are_an_unknown_kind_to_3_9(release: Rules) -> None:
    preprocessed = preprocess(state(release), Request(resources=(resource(GROUP, "team"),)))
    assert len(preprocessed.rejected) == (release is Rules.KAFKA_3_9)
