package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import kafka.cluster.Partition;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;
import scala.Option;

/**
 * Stands before Kafka's class of this name on the class path, so that each @ClusterTest gets a
 * cluster of another process (cluster.py) in place of brokers in this one.
 *
 * A test that asks a broker's objects for more than its configs, ports and metadata is left out.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        this.combined = combined;
    }

    /** Of Kafka's class; its extension calls it. */
    static void waitForCondition(Supplier<Boolean> holds, String what) throws InterruptedException {
        TestUtils.waitForCondition(holds::get, what);
    }

    @Override
    public String getDisplayName(int index) {
        return name + " [" + index + "] " + config.displayTags();
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        OtherProcess cluster = new OtherProcess(config);
        return List.of(
            (BeforeEachCallback) context -> {
                leaveOutWhatIsNotServed();
                if (config.isAutoStart()) cluster.start();
            },
            (AfterTestExecutionCallback) context -> cluster.stop(),
            new ClusterInstanceParameterResolver(cluster));
    }

    /** A test for both types is played once: nodes that listen are not combined here. */
    private void leaveOutWhatIsNotServed() {
        if (combined && config.clusterTypes().contains(Type.KRAFT)) leaveOut("combined nodes: isolated ones play it");
        if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) leaveOut("brokers listen on " + config.brokerSecurityProtocol());
        if (config.controllerSecurityProtocol() != SecurityProtocol.PLAINTEXT) leaveOut("controllers listen on " + config.controllerSecurityProtocol());
    }

    private static void leaveOut(String why) {
        throw new TestAbortedException(why);
    }

    /** A cluster as cluster.py starts it. */
    static final class OtherProcess implements ClusterInstance {
        private static final ObjectMapper JSON = new ObjectMapper();
        private static final int FIRST_CONTROLLER = 3000;

        private final ClusterConfig config;
        private final Map<Integer, KafkaBroker> brokers = new TreeMap<>();
        private final Map<Integer, KafkaBroker> alive = new TreeMap<>();
        private final Map<Integer, ControllerServer> controllers = new TreeMap<>();
        private Process process;
        private BufferedReader lines;
        private JsonNode addresses;
        private boolean started;
        private boolean stopped;

        OtherProcess(ClusterConfig config) {
            this.config = config;
        }

        // Life.

        @Override
        public void start() {
            if (started) return;
            started = true;
            try {
                process = new ProcessBuilder(System.getProperty("cluster.python"), "-m", "tests.kafka.cluster_tests.cluster", shape())
                    .directory(new File(System.getProperty("cluster.checkout")))
                    .redirectError(ProcessBuilder.Redirect.appendTo(new File(System.getProperty("cluster.log"))))
                    .start();
                lines = process.inputReader();
                addresses = response();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            List<Integer> ports = brokerBoundPorts();
            int index = 0;
            for (int id : brokerNumbers()) brokers.put(id, broker(id, ports.get(index++)));
            alive.putAll(brokers);
            for (int id : controllerNumbers()) controllers.put(id, controller(id));
        }

        /** The cluster in JSON, with the ids of Kafka's TestKitNodes and the configs of its test kit. */
        private String shape() throws IOException {
            ObjectNode shape = JSON.createObjectNode();
            shape.set("broker_ids", JSON.valueToTree(brokerNumbers()));
            shape.set("controller_ids", JSON.valueToTree(controllerNumbers()));
            Map<String, String> all = serverProperties();
            if (config.numDisksPerBroker() > 1)
                all.put("log.dirs", IntStream.range(0, config.numDisksPerBroker()).mapToObj(i -> "d" + i).collect(Collectors.joining(",")));
            shape.set("config", JSON.valueToTree(all));
            shape.set("node_configs", JSON.valueToTree(config.perServerOverrideProperties()));
            shape.put("metadata_version", config.metadataVersion().version());
            Map<String, Short> features = new TreeMap<>();
            config.features().forEach((feature, level) -> features.put(feature.featureName(), level));
            shape.set("features", JSON.valueToTree(features));
            return JSON.writeValueAsString(shape);
        }

        private Map<String, String> serverProperties() {
            Map<String, String> all = new LinkedHashMap<>(config.serverProperties());
            all.putIfAbsent("offsets.topic.replication.factor", "1");
            all.putIfAbsent("offsets.topic.num.partitions", "5");
            all.putIfAbsent("transaction.state.log.replication.factor", "1");
            all.putIfAbsent("transaction.state.log.min.isr", "1");
            all.putIfAbsent("transaction.state.log.num.partitions", "5");
            all.putIfAbsent("group.initial.rebalance.delay.ms", "0");
            return all;
        }

        @Override
        public void stop() {
            stopped = true;
            if (process == null) return;
            process.destroyForcibly();
            try {
                process.waitFor(30, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void shutdownBroker(int id) {
            if (!alive.containsKey(id)) return;
            tell("stop", id);
            alive.remove(id);
        }

        @Override
        public void startBroker(int id) {
            if (alive.containsKey(id)) return;
            tell("start", id);
            alive.put(id, brokers.get(id));
        }

        private void tell(String what, int id) {
            try {
                process.outputWriter().write(what + " " + id + "\n");
                process.outputWriter().flush();
                response();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private JsonNode response() throws IOException {
            String line = lines.readLine();
            if (line == null) throw new RuntimeException("the cluster has ended: " + System.getProperty("cluster.log"));
            JsonNode response = JSON.readTree(line);
            if (response.has("left_out")) leaveOut(response.get("left_out").asText());
            if (response.has("error")) throw new RuntimeException(response.get("error").asText());
            return response;
        }

        // What it is.

        private Set<Integer> brokerNumbers() {
            return IntStream.range(0, config.numBrokers()).boxed().collect(Collectors.toCollection(java.util.TreeSet::new));
        }

        private Set<Integer> controllerNumbers() {
            return IntStream.range(FIRST_CONTROLLER, FIRST_CONTROLLER + config.numControllers()).boxed().collect(Collectors.toCollection(java.util.TreeSet::new));
        }

        @Override public Type type() { return Type.KRAFT; }
        @Override public ClusterConfig config() { return config; }
        @Override public Map<Integer, KafkaBroker> brokers() { return brokers; }
        @Override public Map<Integer, KafkaBroker> aliveBrokers() { return alive; }
        @Override public Map<Integer, ControllerServer> controllers() { return controllers; }
        @Override public Set<Integer> brokerIds() { return brokers.keySet(); }
        @Override public Set<Integer> controllerIds() { return controllers.keySet(); }
        @Override public ListenerName clientListener() { return config.brokerListenerName(); }
        @Override public ListenerName controllerListenerName() { return config.controllerListenerName(); }
        @Override public String bootstrapServers() { return addresses.get("brokers").asText(); }
        @Override public String bootstrapControllers() { return addresses.get("controllers").asText(); }
        @Override public String clusterId() { return addresses.get("cluster_id").asText(); }
        @Override public List<Integer> brokerBoundPorts() { return ports(bootstrapServers()); }
        @Override public List<Integer> controllerBoundPorts() { return ports(bootstrapControllers()); }
        @Override public Optional<FaultHandlerException> firstFatalException() { return Optional.empty(); }
        @Override public Optional<FaultHandlerException> firstNonFatalException() { return Optional.empty(); }
        @Override public boolean started() { return started; }
        @Override public boolean stopped() { return stopped; }
        @Override public void waitForReadyBrokers() { }

        private static List<Integer> ports(String addresses) {
            return Arrays.stream(addresses.split(",")).map(a -> Integer.parseInt(a.substring(a.lastIndexOf(':') + 1))).toList();
        }

        // What Kafka waits for by a look into its brokers' caches: an admin client asks.

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            until(() -> describe(topic).isEmpty(), topic + " is not deleted");
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            until(() -> describe(topic).filter(d -> d.partitions().size() == partitions && d.partitions().stream().allMatch(OtherProcess::hasLeader)).isPresent(), topic + " is not created");
        }

        @Override
        public void ensureConsistentMetadata() { }

        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) { }

        @Override
        public int getLeaderBrokerId(TopicPartition partition) throws ExecutionException, InterruptedException {
            try (Admin admin = admin()) {
                return admin.describeTopics(List.of(partition.topic())).allTopicNames().get().get(partition.topic()).partitions().get(partition.partition()).leader().id();
            }
        }

        private Optional<TopicDescription> describe(String topic) throws InterruptedException {
            try (Admin admin = admin()) {
                return Optional.of(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic));
            } catch (ExecutionException e) {
                return Optional.empty();
            }
        }

        private Collection<TopicListing> listings() throws Exception {
            try (Admin admin = admin()) {
                return admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get();
            }
        }

        private static boolean hasLeader(TopicPartitionInfo partition) {
            return partition.leader() != null && !partition.leader().isEmpty();
        }

        private static void until(Callable<Boolean> holds, String what) throws InterruptedException {
            TestUtils.waitForCondition(holds::call, 30_000, what);
        }

        // What tests ask a node's objects for. Waits for brokers that have applied all of the
        // controller's log (TestUtils.ensureConsistentKRaftMetadata) end at once: stubs hold 0.

        private static Answer<Object> orLeaveOut(Map<String, Answer<?>> known) {
            return invocation -> {
                Answer<?> answer = known.get(invocation.getMethod().getName());
                if (answer != null) return answer.answer(invocation);
                if (invocation.getMethod().getDeclaringClass() == Object.class) return Mockito.RETURNS_DEFAULTS.answer(invocation);
                throw new TestAbortedException("looks into " + invocation.getMethod().getDeclaringClass().getSimpleName() + "." + invocation.getMethod().getName());
            };
        }

        private KafkaConfig properties(int id, String roles, int port) {
            Properties properties = new Properties();
            properties.putAll(serverProperties());
            properties.putAll(config.perServerOverrideProperties().getOrDefault(id, Map.of()));
            properties.put("node.id", "" + id);
            properties.put("process.roles", roles);
            properties.put("controller.listener.names", config.controllerListenerName().value());
            String listener = roles.equals("broker") ? config.brokerListenerName().value() : config.controllerListenerName().value();
            properties.put("listeners", listener + "://127.0.0.1:" + port);
            properties.put("listener.security.protocol.map", config.brokerListenerName().value() + ":PLAINTEXT," + config.controllerListenerName().value() + ":PLAINTEXT");
            if (roles.equals("broker")) properties.put("inter.broker.listener.name", config.brokerListenerName().value());
            properties.put("controller.quorum.voters", controllerNumbers().stream().map(n -> n + "@127.0.0.1:1").collect(Collectors.joining(",")));
            return KafkaConfig.fromProps(properties, false);
        }

        private ControllerServer controller(int id) {
            int index = id - FIRST_CONTROLLER;
            int port = controllerBoundPorts().get(index);
            KafkaConfig own = properties(id, "controller", port);
            SocketServer sockets = sockets(own, port);
            KafkaRaftManager<?> log = Mockito.mock(KafkaRaftManager.class, Mockito.RETURNS_DEEP_STUBS);
            return Mockito.mock(ControllerServer.class, orLeaveOut(Map.of("config", i -> own, "socketServer", i -> sockets, "raftManager", i -> log)));
        }

        private static SocketServer sockets(KafkaConfig own, int port) {
            return Mockito.mock(SocketServer.class, orLeaveOut(Map.of("config", i -> own, "boundPort", i -> port)));
        }

        private KafkaBroker broker(int id, int port) {
            KafkaConfig own = properties(id, "broker", port);
            SocketServer sockets = sockets(own, port);
            GroupCoordinator groups = Mockito.mock(GroupCoordinator.class, orLeaveOut(Map.of("groupMetadataTopicConfigs", i -> configsOfOffsets())));
            KRaftMetadataCache cache = metadataCache();
            SharedServer metadata = Mockito.mock(SharedServer.class, Mockito.RETURNS_DEEP_STUBS);
            ReplicaManager replicas = Mockito.mock(ReplicaManager.class, orLeaveOut(Map.of("onlinePartition", i -> Option.apply(partition(id, i.getArgument(0))))));
            Map<String, Answer<?>> known = new HashMap<>();
            known.put("config", i -> own);
            known.put("boundPort", i -> port);
            known.put("socketServer", i -> sockets);
            known.put("groupCoordinator", i -> groups);
            known.put("metadataCache", i -> cache);
            known.put("replicaManager", i -> replicas);
            known.put("sharedServer", i -> metadata);
            known.put("clusterId", i -> clusterId());
            known.put("brokerState", i -> alive.containsKey(id) ? BrokerState.RUNNING : BrokerState.NOT_RUNNING);
            known.put("isShutdown", i -> !alive.containsKey(id));
            known.put("awaitShutdown", i -> null);
            known.put("shutdown", i -> { shutdownBroker(id); return null; });
            known.put("startup", i -> { startBroker(id); return null; });
            return Mockito.mock(BrokerServer.class, orLeaveOut(known));
        }

        /** A partition as a broker holds it, which has a leader's log only where it leads. */
        private Partition partition(int brokerId, TopicPartition partition) throws InterruptedException {
            boolean leads = leaderAndIsr(partition.topic(), partition.partition()).filter(p -> p.leader() == brokerId).isPresent();
            UnifiedLog log = Mockito.mock(UnifiedLog.class, orLeaveOut(Map.of()));
            return Mockito.mock(Partition.class, orLeaveOut(Map.of("leaderLogIfLocal", i -> leads ? Option.apply(log) : Option.empty())));
        }

        private static Properties configsOfOffsets() {
            Properties configs = new Properties();
            configs.put("cleanup.policy", "compact");
            configs.put("compression.type", "producer");
            configs.put("segment.bytes", "104857600");
            return configs;
        }

        private KRaftMetadataCache metadataCache() {
            Map<String, Answer<?>> known = new HashMap<>();
            known.put("numPartitions", i -> describe(i.getArgument(0)).map(d -> d.partitions().size()));
            known.put("contains", i -> describe(i.getArgument(0) instanceof TopicPartition p ? p.topic() : i.getArgument(0)).isPresent());
            known.put("getTopicId", i -> describe(i.getArgument(0)).map(TopicDescription::topicId).orElse(Uuid.ZERO_UUID));
            known.put("getAllTopics", i -> listings().stream().map(TopicListing::name).collect(Collectors.toSet()));
            known.put("topicIdsToNames", i -> listings().stream().collect(Collectors.toMap(TopicListing::topicId, TopicListing::name)));
            known.put("topicNamesToIds", i -> listings().stream().collect(Collectors.toMap(TopicListing::name, TopicListing::topicId)));
            known.put("hasAliveBroker", i -> alive.containsKey(i.<Integer>getArgument(0)));
            known.put("getLeaderAndIsr", i -> leaderAndIsr(i.getArgument(0), i.getArgument(1)));
            return Mockito.mock(KRaftMetadataCache.class, orLeaveOut(known));
        }

        private Optional<LeaderAndIsr> leaderAndIsr(String topic, int partition) throws InterruptedException {
            return describe(topic).flatMap(d -> d.partitions().stream().filter(p -> p.partition() == partition && hasLeader(p)).findFirst())
                .map(p -> new LeaderAndIsr(p.leader().id(), 0, p.isr().stream().map(Node::id).toList(), LeaderRecoveryState.RECOVERED, 0));
        }
    }
}
