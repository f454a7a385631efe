"""The checks of a broker's dynamic configs, before they go to the controller.

Source:  DynamicBrokerConfig.validate, KafkaConfig.validateValues, DynamicThreadPool, LogCleaner.
Leaves out: plugins (reporters, callbacks, key stores), which no broker here loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from minicluster.configs.config_def import ConfigKey, InvalidConfig, Value
from minicluster.configs.definitions import broker_configs
from minicluster.configs.effective import BrokerLevels
from minicluster.errors import UserError, instead
from minicluster.java_order import hash_map_order, string_hash
from minicluster.values import replace

LEADER_THROTTLED_RATE = "leader.replication.throttled.rate"
FOLLOWER_THROTTLED_RATE = "follower.replication.throttled.rate"
LOG_DIRS_MAX_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
QUOTA_CONFIGS = (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE, LOG_DIRS_MAX_RATE)
"""Dynamic configs of brokers that are none of a broker's static ones (QuotaConfig)."""

_OF_3_9 = ("log.message.downconversion.enable", "log.message.timestamp.difference.max.ms")
"""Dynamic configs that Kafka 4 has no more."""

_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)", re.DOTALL)
_MECHANISM_CONFIGS = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
_PER_CLUSTER_OF_LISTENERS = (
    "max.connection.creation.rate",
    "max.connections",
    "num.network.threads",
)
_THREAD_POOLS = (
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "background.threads",
)
_CLEANER_THREADS = "log.cleaner.threads"
_CLEANER_BYTES = 1 << 20

_SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


def is_dynamic(name: str) -> bool:
    """True for a config whose new value a running broker takes."""
    key = broker_configs().keys.get(name)
    return name in QUOTA_CONFIGS if key is None else key.dynamic is not None


def described_key(name: str) -> ConfigKey | None:
    """By what a broker shows a value: one of unknown type, None, may be a secret and is hidden.

    Source:  KafkaConfig.configType.
    """
    keys = broker_configs().keys
    if name in keys:
        return keys[name]
    if name in QUOTA_CONFIGS:
        return ConfigKey(name, "LONG", default=None, validator=None, documentation=None)
    behind = next((keys[other] for other in broker_config_synonyms(name) if other in keys), None)
    return None if behind is None else replace(behind, name=name, documentation=None)


def broker_levels(
    own: Mapping[str, str], default: Mapping[str, str], static: Mapping[str, str]
) -> BrokerLevels:
    """The configs of a broker; dynamic ones that no broker may have are passed over.

    Source:  DynamicBrokerConfig.fromPersistentProps.
    """
    if not own and not default:
        return BrokerLevels({}, {}, static)
    keys = broker_configs().keys
    return BrokerLevels(
        {name: own[name] for name in own if name not in keys or is_dynamic(name)},
        {name: default[name] for name in default if name not in keys or is_dynamic(name)},
        static,
    )


def broker_config_synonyms(name: str) -> tuple[str, ...]:
    """The names of one setting, the strongest first."""
    for names in _SYNONYMS:
        if name in names:
            return names
    if name == _FLUSH[0]:
        return _FLUSH
    listener = _LISTENER.fullmatch(name)
    if listener is None:
        return (name,)
    base = listener[1]
    # Of a mechanism's config the name has the mechanism before it: scram-sha-256.sasl.jaas.config.
    return name, next((known for known in _MECHANISM_CONFIGS if base.endswith(known)), base)


def validate_broker_configs(
    new: Mapping[str, str],
    broker: BrokerLevels,
    *,
    per_broker: bool,
    cordoned_dirs_must_exist: bool = True,
) -> None:
    """Check all dynamic configs that a broker, or the whole cluster, is to have.

    Shapes:  broker has the values of now; cordoned_dirs_must_exist: of ``Rules``.
    Errors:  InvalidConfig.
    """
    keys = broker_configs().keys
    _none_of(
        (name for name in new if name in keys and keys[name].dynamic is None),
        "Cannot update these configs dynamically",
    )
    _none_of(
        (name for name in new if name in keys and _is_security(name)),
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
    )
    for key in keys.values():
        if key.dynamic is not None and key.name in new:
            key.parse(new[key.name])
    if not per_broker:
        _none_of(
            (name for name in new if _is_per_broker(name)),
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    changed = (
        BrokerLevels(new, broker.dynamic_default, broker.static)
        if per_broker
        else BrokerLevels(broker.dynamic, new, broker.static)
    )
    _check_together(changed)
    if cordoned_dirs_must_exist:
        check_cordoned(changed)
    _check_threads(broker, changed)


def check_by_itself(name: str, value: object, *, per_broker: bool) -> None:
    """Reject a config that would do nothing on any broker; None removes one.

    Kafka's clients are told so by the broker that they ask. What goes to the controller itself is
    accepted, and the brokers pass over it.

    Errors:  UserError.
    """
    key = described_key(name)
    if key is None:
        if name in _OF_3_9:
            return
        known = [*filter(is_dynamic, broker_configs().keys), *QUOTA_CONFIGS]
        hint = instead(name, known, "write one such as log.retention.ms")
        raise UserError(f"unknown broker config {name!r}; {hint}")
    if name in broker_configs().keys and key.dynamic is None:
        raise UserError(f"no running broker takes {name}; set it in the cluster's config")
    if not per_broker and _is_per_broker(name):
        raise UserError(f"{name} is of single brokers; name the broker")
    if value is not None:
        try:
            key.parse(str(value))
        except InvalidConfig as error:
            raise UserError(str(error)) from None


def _is_security(name: str) -> bool:
    return broker_configs().keys[name].dynamic == "per-broker" and name in _SECURITY


_SECURITY = frozenset(
    {
        "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key",
        "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type",
        "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password",
        "ssl.truststore.type",
    }
)  # fmt: skip


def _is_per_broker(name: str) -> bool:
    key = broker_configs().keys.get(name)
    if key is not None and key.dynamic == "per-broker":
        return True
    listener = _LISTENER.fullmatch(name)
    return listener is not None and listener[1] not in _PER_CLUSTER_OF_LISTENERS


def _none_of(names: Iterable[str], why: str) -> None:
    rejected = hash_map_order(names, string_hash)
    if rejected:
        raise InvalidConfig(f"{why}: [{', '.join(rejected)}]")


def _check_together(levels: BrokerLevels) -> None:
    """Reject values with which a broker would not start."""
    threads = _int(levels, _CLEANER_THREADS)
    if threads == 0:
        raise InvalidConfig("/ by zero")  # Kafka divides by it before its own check can reject it
    if _int(levels, "log.cleaner.dedupe.buffer.size") // threads <= _CLEANER_BYTES:
        raise InvalidConfig(
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner "
            "thread."
        )
    retention = levels.value("log.retention.ms")
    if retention is not None and not (int(retention) >= 1 or int(retention) == -1):
        raise InvalidConfig(
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or "
            "equal to 1"
        )


def check_cordoned(levels: BrokerLevels) -> None:
    """Reject cordoned directories that the broker does not have (KIP-1066).

    Errors:  InvalidConfig.
    Source:  KafkaConfig.validateCordonedLogDirs.
    """
    cordoned = _list(levels, "cordoned.log.dirs")
    if "*" in cordoned:
        if len(cordoned) > 1:
            raise InvalidConfig(
                "requirement failed: When cordoned.log.dirs is set to *, it must not contain other "
                "values"
            )
        return
    directories = _list(levels, "log.dirs") or _list(levels, "log.dir")
    unknown = [name for name in cordoned if name not in directories]
    if unknown:
        raise InvalidConfig(
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or "
            f"log.dir. Missing entries : {', '.join(unknown)}"
        )


def _check_threads(now: BrokerLevels, changed: BrokerLevels) -> None:
    """A pool of threads at most halves or doubles at once."""
    for name in _THREAD_POOLS:
        old, new = _int(now, name), _int(changed, name)
        failed = f"Dynamic thread count update validation failed for {name}={new}"
        if new == old:
            continue
        if new <= 0:
            raise _not_reconfigured(f"{failed}, value should be at least 1")
        if new < old // 2:
            raise _not_reconfigured(
                f"{failed}, value should be at least half the current value {old}"
            )
        if new > old * 2:
            raise _not_reconfigured(
                f"{failed}, value should not be greater than double the current value {old}"
            )
    old, new = _int(now, _CLEANER_THREADS), _int(changed, _CLEANER_THREADS)
    if new < old // 2:
        raise _not_reconfigured(
            f"Log cleaner threads cannot be reduced to less than half the current value {old}"
        )
    if new > old * 2:
        raise _not_reconfigured(
            f"Log cleaner threads cannot be increased to more than double the current value {old}"
        )


def _not_reconfigured(why: str) -> InvalidConfig:
    """The refusal of a component, in Kafka's odd words.

    They come from a constructor for a name and a value, ConfigException(String, Object), which is
    called with a text and the component's exception.

    Source:  DynamicBrokerConfig.processReconfiguration.
    """
    return InvalidConfig(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {why} for configuration "
        "Invalid dynamic configuration"
    )


def _int(levels: BrokerLevels, name: str) -> int:
    value: Value = broker_configs().keys[name].parse(levels.value(name))
    assert isinstance(value, int)
    return value


def _list(levels: BrokerLevels, name: str) -> Sequence[str]:
    value: Value = broker_configs().keys[name].parse(levels.value(name))
    return value if isinstance(value, list) else []
