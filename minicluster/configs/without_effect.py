"""Configs of Kafka that a cluster takes and describes, and that change nothing here.

Clients see the value that was set. What it is about does not exist in this cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.configs.views import broker_default

# Of these the default acts, though a value that is given does not.
CONTROLLER_SOCKET_TIMEOUT_MS: int = broker_default("controller.socket.timeout.ms")
"""How long a request has that a broker sends to the controller."""
LOAD_BUFFER_BYTES: int = broker_default("offsets.load.buffer.size")
"""How much of its log a coordinator reads at once."""

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "the cluster's own nodes need not log in": (
        "early.start.listeners",
        "principal.builder.class",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "security.",
    ),
    "users=… has the passwords, and tokens are unsigned": (
        "sasl.client.callback.handler.class",
        "sasl.jaas.config",
        "sasl.kerberos.",
        "sasl.login.",
        "sasl.oauthbearer.",
        "sasl.server.callback.handler.class",
    ),
    "the cluster's own authority makes certificates, in memory": (
        "ssl.allow.",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.key.",
        "ssl.keymanager.algorithm",
        "ssl.keystore.",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.",
    ),
    "a request to the controller has Kafka's default": ("controller.socket.timeout.ms",),
    "no plugin is loaded": (
        "alter.config.policy.class.name",
        "create.topic.policy.class.name",
        "client.quota.callback.class",
        "config.providers",
        "metric.reporters",
        "kafka.metrics.",
    ),
    "no quota of clients is enforced": (
        "quota.",
        "max.connection.creation.rate",
    ),
    "there is no tiered storage": (
        "remote.",
        "log.local.",
        "local.retention.",
        "follower.fetch.last.tiered.offset.enable",
    ),
    "there are no share groups": ("group.share.", "share."),
    "there are no streams groups": ("group.streams.",),
    "there are no metrics": ("metrics.", "telemetry.max.bytes", "controller.performance."),
    "actors have no pools of threads": (
        "background.threads",
        "group.coordinator.background.threads",
        "group.coordinator.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
        "server.max.startup.time.ms",
    ),
    "buffers, queues and sockets have no limits of their own": (
        "fetch.purgatory.purge.interval.requests",
        "producer.purgatory.purge.interval.requests",
        "delete.records.purgatory.purge.interval.requests",
        "group.coordinator.cached.buffer.max.bytes",
        "offsets.load.buffer.size",
        "transaction.state.log.load.buffer.size",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.",
        "queued.max.",
        "replica.socket.",
        "socket.connection.setup.timeout.",
        "socket.listen.backlog.size",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
    ),
    "a simulated disk has no files of segments and indexes": (
        "file.delete.delay.ms",
        "log.segment.delete.delay.ms",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "log.index.size.max.bytes",
        "segment.index.bytes",
        "log.preallocate",
        "preallocate",
        "log.roll.jitter.",
        "segment.jitter.ms",
        "metadata.log.segment.",
        "internal.metadata.",
    ),
    "each codec has one level": (
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
    ),
    "a coordinator writes each operation at once, as Kafka's by default when nothing waits": (
        "group.coordinator.append.linger.ms",
    ),
    "log.dirs names the directories": ("log.dir",),
    "the cluster sets the addresses of its controllers": ("controller.quorum.bootstrap.servers",),
}


def reason_without_effect(name: str) -> str | None:
    """The reason why a config changes nothing here, None for one that acts.

    Shapes:  a name that ends with a dot is the beginning of several.
    """
    for reason, names in _GROUPS.items():
        for beginning in names:
            if name == beginning or (beginning.endswith(".") and name.startswith(beginning)):
                return reason
    return None
