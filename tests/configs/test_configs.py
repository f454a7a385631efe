"""Kafka's config definitions: the table is whole, and values are refused in Kafka's words."""

from __future__ import annotations

import math

import pytest

from minicluster.configs.config_def import ConfigKey, InvalidConfig, java_double
from minicluster.configs.definitions import (
    TOPIC_SYNONYMS,
    broker_configs,
    client_metrics_configs,
    group_configs,
    group_synonym,
    topic_configs,
)
from minicluster.configs.dynamic_broker import validate_broker_configs
from minicluster.configs.effective import (
    BrokerLevels,
    ConfigSource,
    effective_topic_config,
    effective_topic_configs,
)
from minicluster.configs.validation import (
    TopicConfigChecks,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)

NOTHING_SET = BrokerLevels({}, {}, {})
KINDS = (topic_configs(), broker_configs(), group_configs(), client_metrics_configs())


@pytest.mark.parametrize("key", [key for kind in KINDS for key in kind], ids=lambda key: key.name)
def test_every_default_is_written_as_kafka_writes_the_value(key: ConfigKey) -> None:
    assert key.normalized(key.default) == key.default
    assert key.documentation or key.internal


def test_every_synonym_is_a_broker_config_and_every_topic_config_has_a_value() -> None:
    assert all(name in broker_configs() for names in TOPIC_SYNONYMS.values() for name in names)
    assert set(TOPIC_SYNONYMS) <= set(topic_configs().keys)
    synonyms = [group_synonym(key.name) for key in group_configs()]
    assert all(name in broker_configs() for name in synonyms if name is not None)
    assert len(effective_topic_configs({}, NOTHING_SET)) == len(topic_configs().keys) - 1


@pytest.mark.parametrize(
    ("config", "value", "message"),
    [
        ("no.such.config", "1", "Unknown topic config name: no.such.config"),
        ("segment.bytes", "10", "Value must be at least 1048576"),
        ("max.message.bytes", "1.5", "Not a number of type INT"),
        ("max.message.bytes", "99999999999", "Not a number of type INT"),
        ("retention.ms", "x", "Invalid value x for configuration retention.ms: Not a number of"),
        ("min.cleanable.dirty.ratio", "1.5", "Invalid value 1.5 for configuration min.cleanable"),
        ("compression.type", "magic", "one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("cleanup.policy", "burn", "Invalid value burn for configuration cleanup.policy"),
        ("cleanup.policy", "delete,delete", None),
        ("cleanup.policy", "delete,,", "'cleanup.policy' values must not be empty"),
        ("cleanup.policy", "delete,", "'cleanup.policy' values must not be empty"),
        ("leader.replication.throttled.replicas", "bad", "must be the literal '*' or a list"),
        ("unclean.leader.election.enable", "maybe", "Expected value to be either true or false"),
        ("min.compaction.lag.ms", str(2**63 - 1), None),
        ("remote.storage.enable", "true", "Tiered Storage functionality is disabled"),
    ],
)
def test_a_bad_topic_config_is_refused(config: str, value: str, message: str | None) -> None:
    if message is None:
        validate_topic_configs({config: value}, {}, NOTHING_SET)
        return
    with pytest.raises(InvalidConfig) as refused:
        validate_topic_configs({config: value}, {}, NOTHING_SET)
    assert message in refused.value.message


def test_many_topics_are_checked_as_one_is() -> None:
    """What topics leave to the broker is read once, and rejected in its place in the order."""
    broker = BrokerLevels({}, {}, {"log.retention.ms": "soon"})
    checks = TopicConfigChecks(broker)
    checks.validate({"retention.ms": "1000"}, {})  # the broker's does not hold for this topic
    for new, name in (
        ({}, "retention.ms"),
        ({"segment.bytes": "10"}, "segment.bytes"),  # before retention.ms, in Kafka's order
        ({"cleanup.policy": "burn"}, "retention.ms"),  # behind it
    ):
        for validate in (
            lambda: checks.validate(new, {}),  # noqa: B023
            lambda: validate_topic_configs(new, {}, broker),  # noqa: B023
        ):
            with pytest.raises(InvalidConfig) as refusal:
                validate()
            assert f"for configuration {name}" in refusal.value.message


@pytest.mark.parametrize(
    ("config", "text", "value"),
    [
        ("cleanup.policy", "compact,delete, compact", ["compact", "delete"]),
        ("flush.ms", "\u0661\uff12", 12),  # digits of other scripts
        ("flush.ms", "\x1f+007\t", 7),
        ("flush.ms", "\u00a07", None),  # Java trims no such space
        ("flush.ms", "\U0001d7d5", None),  # a digit of two chars
        ("flush.ms", "0" * 5_000 + "7", 7),
        ("flush.ms", "7" * 5_000, None),
        ("min.cleanable.dirty.ratio", "0x1p-1", 0.5),
        ("min.cleanable.dirty.ratio", "0x.8p0f", 0.5),
        ("min.cleanable.dirty.ratio", "0x1", None),
        ("min.cleanable.dirty.ratio", "1e400", None),
        ("min.cleanable.dirty.ratio", "-Infinity", None),
        ("min.cleanable.dirty.ratio", ".5D", 0.5),
        ("min.cleanable.dirty.ratio", "-0.0", -0.0),
    ],
)
def test_a_text_is_read_as_java_reads_it(config: str, text: str, value: object) -> None:
    """Recorded from CreateTopics of Kafka 4.3: None is INVALID_CONFIG."""
    key = topic_configs().keys[config]
    if value is None:
        with pytest.raises(InvalidConfig, match="Invalid value"):
            key.parse(text)
    else:
        assert key.parse(text) == value


def test_not_a_number_is_outside_of_no_range() -> None:
    """Kafka takes it: no comparison with it is true."""
    assert math.isnan(topic_configs().keys["min.cleanable.dirty.ratio"].parse("NaN"))  # type: ignore[arg-type]


def test_a_topic_takes_the_strongest_value_in_its_own_units() -> None:
    levels = BrokerLevels({}, {"log.retention.minutes": "2"}, {"log.retention.hours": "1"})
    found = effective_topic_config("retention.ms", {}, levels)
    assert (found.value, found.source) == ("120000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    found = effective_topic_config("retention.ms", {"retention.ms": "7"}, levels)
    assert (found.value, found.source) == ("7", ConfigSource.TOPIC_CONFIG)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"retention.ms": "1"}, "Unknown group config name: retention.ms"),
        (
            {"consumer.session.timeout.ms": "1"},
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"streams.num.standby.replicas": "9"},
            "streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
        (
            {"share.auto.offset.reset": "soon"},
            "Invalid value soon for configuration share.auto.offset.reset: Invalid value `soon` "
            "for configuration share.auto.offset.reset. The value must be either 'earliest', "
            "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
    ],
)
def test_a_bad_group_config_is_refused(configs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        validate_group_configs(configs, NOTHING_SET)
    assert refused.value.message == message


def test_a_group_config_within_the_bounds_is_taken() -> None:
    validate_group_configs({"share.auto.offset.reset": "by_duration:PT1H"}, NOTHING_SET)
    validate_group_configs({"consumer.session.timeout.ms": "50000"}, NOTHING_SET)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"cleanup.policy": "delete"}, "Unknown client metrics configuration: cleanup.policy"),
        ({"interval.ms": "5"}, "interval must be between 100 and 3600000 (1 hour)"),
        ({"match": "client_id"}, "Illegal client matching pattern: client_id"),
        ({"match": "client_id=("}, "Illegal client matching pattern: client_id=("),
    ],
)
def test_a_bad_client_metrics_config_is_refused(configs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        validate_client_metrics_configs("all", configs)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("configs", "per_broker", "message"),
    [
        ({"broker.id": "7"}, True, "Cannot update these configs dynamically: [broker.id]"),
        ({"listeners": "A://:1"}, False, "Cannot update these configs at default cluster level"),
        ({"ssl.keystore.type": "JKS"}, True, "only per-listener using the listener prefix"),
        ({"log.cleaner.threads": "0"}, True, "/ by zero"),
        ({"num.io.threads": "3"}, True, "should be at least half the current value 8"),
        ({"num.io.threads": "17"}, False, "not be greater than double the current value 8"),
        ({"message.max.bytes": "-1"}, True, "Value must be at least 0"),
    ],
)
def test_a_bad_dynamic_broker_config_is_refused(
    configs: dict[str, str], per_broker: bool, message: str
) -> None:
    with pytest.raises(InvalidConfig) as refused:
        validate_broker_configs(configs, NOTHING_SET, per_broker=per_broker)
    assert message in refused.value.message


def test_what_no_broker_defines_may_be_set() -> None:
    validate_broker_configs({"my.plugin": "1"}, NOTHING_SET, per_broker=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (1.5e-5, "1.5E-5"),
        (2147483647.0, "2.147483647E9"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert java_double(value) == text
