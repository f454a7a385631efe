package org.apache.kafka.common.test.junit;

import static java.util.concurrent.CompletableFuture.completedFuture;
import static org.mockito.Mockito.RETURNS_DEEP_STUBS;
import static org.mockito.Mockito.RETURNS_DEFAULTS;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.QuorumController;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.ClusterImage;
import org.apache.kafka.image.FeaturesImage;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.raft.KafkaRaftClient;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.BrokerLifecycleManager;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.test.TestUtils;
import org.mockito.stubbing.Answer;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The nodes of a cluster in another process as objects: what tests ask them for is their configs,
 * ports and metadata, and a test that asks for more is left out.
 */
final class Nodes {
    private final OtherProcess cluster;

    Nodes(OtherProcess cluster) {
        this.cluster = cluster;
    }

    private static <T> T node(Class<T> type, Map<String, Answer<?>> known) {
        return mock(type, invocation -> {
            Method method = invocation.getMethod();
            Answer<?> answer = known.get(method.getName());
            if (answer != null) return answer.answer(invocation);
            if (method.getDeclaringClass() != Object.class)
                RaftClusterInvocationContext.leaveOut("looks into "
                    + method.getDeclaringClass().getSimpleName() + "." + method.getName());
            return RETURNS_DEFAULTS.answer(invocation);
        });
    }

    /**
     * Waits until brokers have applied all of the controller's log (ensureConsistentKRaftMetadata)
     * begin by a look at its end, which cluster.py answers when they have; the stubs of both say 0.
     */
    ControllerServer controller(int id, int port) {
        KafkaConfig config = config(id, "controller");
        SocketServer sockets = sockets(config, port);
        KafkaRaftManager<?> log = mock(KafkaRaftManager.class, RETURNS_DEEP_STUBS);
        Controller controller = node(QuorumController.class, Map.of(
            "nodeId", i -> id,
            "isActive", i -> cluster.activeController().isLeader(id),
            "incrementalAlterConfigs", i -> cluster.alter(i.getArgument(1), i.getArgument(2)),
            "findAllTopicIds", i -> completedFuture(cluster.listings().stream()
                .collect(Collectors.toMap(TopicListing::name, TopicListing::topicId))),
            "findTopicIds", i -> completedFuture(cluster.listings().stream()
                .filter(topic -> i.<Collection<String>>getArgument(1).contains(topic.name()))
                .collect(Collectors.toMap(
                    TopicListing::name, topic -> ResultOrError.of(topic.topicId()))))));
        KafkaRaftClient<?> client = node(KafkaRaftClient.class, Map.of(
            "leaderAndEpoch", i -> cluster.activeController(),
            "shutdown", i -> { cluster.stopController(id); return completedFuture(null); }));
        KafkaRaftManager<?> quorum = node(KafkaRaftManager.class, Map.of(
            "client", i -> client,
            "shutdown", i -> { cluster.stopController(id); return null; }));
        SharedServer shared = node(SharedServer.class, Map.of(
            "raftManager", i -> quorum,
            "controllerConfig", i -> config));
        return node(ControllerServer.class, Map.of(
            "sharedServer", i -> shared,
            "controller", i -> controller,
            "config", i -> config,
            "socketServer", i -> sockets,
            "authorizerPlugin", i -> authorizer(),
            "shutdown", i -> { cluster.stopController(id); return null; },
            "startup", i -> { cluster.startController(id); return null; },
            "raftManager", i -> {
                cluster.ensureConsistentMetadata();
                return log;
            }));
    }

    KafkaBroker broker(int id, int port) {
        KafkaConfig config = config(id, "broker");
        SocketServer sockets = sockets(config, port);
        KRaftMetadataCache cache = metadataCache();
        KafkaApis apis = node(KafkaApis.class, Map.of(
            "metadataCache", i -> cache,
            "clusterId", i -> cluster.clusterId()));
        SharedServer applied = mock(SharedServer.class, RETURNS_DEEP_STUBS);
        BrokerLifecycleManager life = node(BrokerLifecycleManager.class, Map.of(
            "initialUnfenceFuture", i -> completedFuture(null),
            "brokerEpoch", i -> cluster.ask("epoch " + id).asLong()));
        LogManager logs = logs(id);
        GroupCoordinator groups = node(
            GroupCoordinator.class, Map.of("groupMetadataTopicConfigs", i -> configsOfOffsets()));
        ReplicaManager replicas = node(ReplicaManager.class, Map.of(
            "metadataCache", i -> cache,
            "logManager", i -> logs,
            "handleLogDirFailure$default$2", i -> true,
            "handleLogDirFailure", i -> { failDirectory(id, i.getArgument(0)); return null; },
            "getLogEndOffsetLag", i -> cluster.ask("lag " + id + " " + i.getArgument(0)).asLong(),
            "localLog", i -> has(id, i.getArgument(0))
                ? Option.apply(log(id, i.getArgument(0))) : Option.empty(),
            "onlinePartition", i -> described(i.getArgument(0)).isEmpty() ? Option.empty()
                : Option.apply(partition(id, i.getArgument(0)))));
        Map<String, Answer<?>> known = new HashMap<>();
        known.put("config", i -> withDynamic(config, id));
        known.put("configRepository", i -> cache);
        known.put("boundPort", i -> port);
        known.put("socketServer", i -> sockets);
        known.put("groupCoordinator", i -> groups);
        known.put("metadataCache", i -> cache);
        known.put("replicaManager", i -> replicas);
        known.put("dataPlaneRequestProcessor", i -> apis);
        known.put("logManager", i -> logs);
        known.put("raftManager", i -> quorum());
        LogDirFailureChannel failures = node(LogDirFailureChannel.class, Map.of(
            "maybeAddOfflineLogDir", i -> { failDirectory(id, i.getArgument(0)); return null; }));
        known.put("logDirFailureChannel", i -> failures);
        known.put("lifecycleManager", i -> life);
        known.put("sharedServer", i -> applied);
        known.put("clusterId", i -> cluster.clusterId());
        known.put("authorizerPlugin", i -> authorizer());
        known.put("brokerState", i -> runs(id) ? BrokerState.RUNNING : BrokerState.NOT_RUNNING);
        known.put("isShutdown", i -> !runs(id));
        known.put("awaitShutdown", i -> null);
        known.put("shutdown", i -> { cluster.shutdownBroker(id); return null; });
        known.put("startup", i -> { cluster.startBroker(id); return null; });
        return node(BrokerServer.class, known);
    }

    /** An authorizer that shows its ACLs, which tests wait for. */
    private Option<Plugin<Authorizer>> authorizer() {
        Authorizer authorizer = node(
            Authorizer.class, Map.of("acls", i -> cluster.acls(i.getArgument(0))));
        return Option.apply(Plugin.wrapInstance(authorizer, null, "authorizer.class.name"));
    }

    private boolean runs(int id) {
        return cluster.aliveBrokers().containsKey(id);
    }

    private KafkaConfig config(int id, String roles) {
        String forClients = cluster.clientListener().value();
        String ofControllers = cluster.controllerListenerName().value();
        boolean isBroker = roles.equals("broker");
        Properties properties = new Properties();
        properties.putAll(cluster.serverProperties());
        properties.putAll(
            cluster.config().perServerOverrideProperties().getOrDefault(id, Map.of()));
        properties.put("node.id", "" + id);
        properties.put("process.roles", roles);
        properties.put("listeners", (isBroker ? forClients : ofControllers) + "://localhost:0");
        properties.put("controller.listener.names", ofControllers);
        properties.put("listener.security.protocol.map",
            forClients + ":" + cluster.config().brokerSecurityProtocol() + ","
                + ofControllers + ":" + cluster.config().controllerSecurityProtocol());
        if (isBroker) {
            properties.put("inter.broker.listener.name", forClients);
            properties.putIfAbsent("log.dirs", "" + cluster.logDirectory(id).toAbsolutePath());
            properties.remove("controller.quorum.auto.join.enable");  // of controllers only
        }
        properties.put("controller.quorum.voters", cluster.controllerNumbers().stream()
            .map(voter -> voter + "@127.0.0.1:1").collect(Collectors.joining(",")));
        return KafkaConfig.fromProps(properties, false);
    }

    /** The configs of a broker's file, or those with what an administrator has set since. */
    private KafkaConfig withDynamic(KafkaConfig config, int id) {
        JsonNode set = cluster.ask("dynamic-configs " + id);
        if (set.isEmpty()) return config;
        Properties properties = new Properties();
        properties.putAll(config.originals());
        set.properties().forEach(
            each -> properties.put(each.getKey(), each.getValue().asText()));
        return KafkaConfig.fromProps(properties, false);
    }

    private static SocketServer sockets(KafkaConfig config, int port) {
        return node(SocketServer.class, Map.of("config", i -> config, "boundPort", i -> port));
    }

    private static Properties configsOfOffsets() {
        Properties configs = new Properties();
        configs.put("cleanup.policy", "compact");
        configs.put("compression.type", "producer");
        configs.put("segment.bytes", "104857600");
        return configs;
    }

    private KafkaRaftManager<?> quorum() throws InterruptedException, ExecutionException {
        KafkaRaftManager<?> quorum = mock(KafkaRaftManager.class, RETURNS_DEEP_STUBS);
        LeaderAndEpoch active = cluster.activeController();
        when(quorum.client().leaderAndEpoch()).thenReturn(active);
        return quorum;
    }

    /** Logs that can be rolled and are cleaned by themselves, as awaitCleaned expects. */
    private LogManager logs(int id) {
        LogCleaner cleaner = node(LogCleaner.class, Map.of("awaitCleaned", i -> {
            String asked = "cleaned " + id + " " + i.getArgument(0);
            TestUtils.waitForCondition(
                () -> cluster.ask(asked).asLong() >= i.<Long>getArgument(1),
                i.<Long>getArgument(2), asked);
            return true;
        }));
        return node(LogManager.class, Map.of(
            "liveLogDirs", i -> CollectionConverters.asScala(
                List.of(cluster.logDirectory(id).toFile())).toSeq(),
            "getLog$default$2", i -> false,
            "getLog", i -> has(id, i.getArgument(0))
                ? Option.apply(log(id, i.getArgument(0))) : Option.empty(),
            "isLogDirOnline", i -> cluster.ask("works " + id + " " + i.getArgument(0)).asBoolean(),
            "producerStateManagerConfig", i -> new ProducerStateManagerConfig(
                Integer.parseInt(cluster.configOf(id, "producer.id.expiration.ms")), true),
            "cleaner", i -> cleaner));
    }

    private boolean has(int id, TopicPartition partition) {
        return !cluster.ask("directory " + id + " " + partition).isNull();
    }

    private void failDirectory(int id, String directory) {
        cluster.ask("fail-directory " + id + " " + directory);
    }

    private UnifiedLog log(int id, TopicPartition partition) {
        String named = " " + id + " " + partition;
        return node(UnifiedLog.class, Map.of(
            "dir", i -> new File(
                cluster.ask("directory" + named).asText(), partition.toString()),
            "config", i -> new LogConfig(cluster.configsOf(partition.topic()).stream()
                .collect(Collectors.toMap(ConfigEntry::name, ConfigEntry::value))),
            "logStartOffset", i -> cluster.ask("begin" + named).asLong(),
            "logEndOffset", i -> cluster.ask("end" + named).asLong(),
            "size", i -> cluster.ask("size" + named).asLong(),
            "numberOfSegments", i -> cluster.ask("segments" + named).asInt(),
            "roll", i -> { cluster.ask("roll" + named); return null; }));
    }

    /** A partition as a broker has it, with a leader's log only where it leads. */
    private Partition partition(int brokerId, TopicPartition partition)
        throws InterruptedException {
        boolean leads = leaderAndIsr(partition.topic(), partition.partition())
            .filter(state -> state.leader() == brokerId).isPresent();
        cluster.countUncleanElections();
        UnifiedLog log = log(brokerId, partition);
        return node(Partition.class, Map.of(
            "leaderReplicaIdOpt", i -> leads ? Option.apply(brokerId) : Option.empty(),
            "getLeaderEpoch", i -> cluster.leaderEpoch(partition),
            "leaderLogIfLocal", i -> leads ? Option.apply(log) : Option.empty()));
    }

    private KRaftMetadataCache metadataCache() {
        Map<String, Answer<?>> known = new HashMap<>();
        known.put("contains", i -> described(i.getArgument(0)).isPresent());
        known.put("numPartitions", i -> described(i.getArgument(0))
            .map(topic -> topic.partitions().size()));
        known.put("getTopicId", i -> described(i.getArgument(0))
            .map(TopicDescription::topicId).orElse(Uuid.ZERO_UUID));
        known.put("getAllTopics", i -> cluster.listings().stream()
            .map(TopicListing::name).collect(Collectors.toSet()));
        known.put("topicIdsToNames", i -> cluster.listings().stream()
            .collect(Collectors.toMap(TopicListing::topicId, TopicListing::name)));
        known.put("topicNamesToIds", i -> cluster.listings().stream()
            .collect(Collectors.toMap(TopicListing::name, TopicListing::topicId)));
        MetadataImage image = node(MetadataImage.class, Map.of(
            "cluster", i -> registrations(),
            "features", i -> new FeaturesImage(Map.of(), cluster.metadataVersion())));
        known.put("currentImage", i -> image);
        known.put("getPartitionLeaderEndpoint", i -> described(i.getArgument(0))
            .map(topic -> topic.partitions().get(i.<Integer>getArgument(1)).leader()));
        known.put("topicConfig", i -> cluster.configsOf(i.getArgument(0)).stream()
            .filter(entry -> entry.source() == ConfigSource.DYNAMIC_TOPIC_CONFIG)
            .collect(Properties::new, (all, e) -> all.put(e.name(), e.value()), Map::putAll));
        known.put("hasAliveBroker", i -> runs(i.<Integer>getArgument(0)));
        known.put("getLeaderAndIsr", i -> {
            cluster.countUncleanElections();
            return leaderAndIsr(i.getArgument(0), i.getArgument(1));
        });
        known.put("getPartitionReplicaEndpoints", i -> endpoints(i.getArgument(0)));
        return node(KRaftMetadataCache.class, known);
    }

    /** Where clients reach the replicas that run, once each broker knows them. */
    private Map<Integer, Node> endpoints(TopicPartition partition) throws InterruptedException {
        cluster.ensureConsistentMetadata();
        return described(partition).stream().flatMap(topic -> topic.partitions().stream())
            .filter(known -> known.partition() == partition.partition())
            .flatMap(known -> known.replicas().stream())
            .filter(replica -> !replica.host().isEmpty())
            .collect(Collectors.toMap(Node::id, replica -> replica));
    }

    private ClusterImage registrations() throws InterruptedException, ExecutionException {
        return new ClusterImage(
            cluster.registered().stream().collect(Collectors.toMap(
                Node::id,
                node -> new BrokerRegistration.Builder()
                    .setId(node.id())
                    .setFenced(node.isFenced())
                    .build())),
            Map.of());
    }

    private Optional<TopicDescription> described(Object named) throws InterruptedException {
        return cluster.describe(named instanceof TopicPartition p ? p.topic() : (String) named);
    }

    private Optional<LeaderAndIsr> leaderAndIsr(String topic, int partition)
        throws InterruptedException {
        return cluster.describe(topic).stream().flatMap(d -> d.partitions().stream())
            .filter(p -> p.partition() == partition)
            .map(p -> new LeaderAndIsr(OtherProcess.leaderOf(p),
                cluster.leaderEpoch(new TopicPartition(topic, partition)),
                p.isr().stream().map(Node::id).toList(), LeaderRecoveryState.RECOVERED, 0))
            .findFirst();
    }
}
