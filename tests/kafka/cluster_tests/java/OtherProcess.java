package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.GroupVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.test.TestUtils;

/** A cluster as cluster.py starts it: addresses come from there, and an admin client asks. */
public final class OtherProcess implements ClusterInstance {
    public static final int FIRST_CONTROLLER = 3000;

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long WITHIN_MS = 30_000;
    private static final MetricName UNCLEAN_ELECTIONS =
        new MetricName("kafka.controller", "ControllerStats", "UncleanLeaderElectionsPerSec");
    // KafkaClusterTestKit's, where a test sets no others.
    private static final Map<String, String> OF_TEST_KIT = Map.of(
        "offsets.topic.replication.factor", "1",
        "offsets.topic.num.partitions", "5",
        "transaction.state.log.replication.factor", "1",
        "transaction.state.log.min.isr", "1",
        "transaction.state.log.num.partitions", "5",
        "group.initial.rebalance.delay.ms", "0",
        "log.cleaner.dedupe.buffer.size", "2097152");
    // The same, where its brokers' clients log in.
    private static final Map<String, String> OF_TEST_KIT_WITH_SASL = Map.of(
        "sasl.enabled.mechanisms", "PLAIN",
        "sasl.mechanism.inter.broker.protocol", "PLAIN",
        "sasl.mechanism.controller.protocol", "PLAIN",
        "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
    private static final Map<String, String> USERS_OF_TEST_KIT = new TreeMap<>(Map.of(
        JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
        JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));

    private final ClusterConfig config;
    private final Set<Integer> brokerNumbers;
    private final Map<String, String> defaults;
    private final Map<String, Object> formatted;
    private final Map<Integer, KafkaBroker> brokers = new TreeMap<>();
    private final Map<Integer, KafkaBroker> alive = new TreeMap<>();
    private final Map<Integer, ControllerServer> controllers = new TreeMap<>();
    private final Meter uncleanElections;
    private Process process;
    private BufferedReader lines;
    private JsonNode addresses;
    private boolean started;
    private boolean stopped;

    OtherProcess(ClusterConfig config) {
        this(config, Map.of());
    }

    /** Brokers 0, 1, …; formatted: what cluster.py is told besides of the disks of the nodes. */
    public OtherProcess(ClusterConfig config, Map<String, Object> formatted) {
        this(config, numbers(0, config.numBrokers()), ofTestKit(config), formatted);
    }

    /** Brokers with these ids and no configs but those of the test. */
    public OtherProcess(ClusterConfig config, Set<Integer> brokerNumbers) {
        this(config, brokerNumbers, Map.of(), Map.of());
    }

    private OtherProcess(
        ClusterConfig config, Set<Integer> brokerNumbers, Map<String, String> defaults,
        Map<String, Object> formatted) {
        this.config = config;
        this.brokerNumbers = new TreeSet<>(brokerNumbers);
        this.defaults = defaults;
        this.formatted = formatted;
        MetricsRegistry ofNodes = KafkaYammerMetrics.defaultRegistry();
        ofNodes.removeMetric(UNCLEAN_ELECTIONS);
        uncleanElections = ofNodes.newMeter(UNCLEAN_ELECTIONS, "elections", TimeUnit.SECONDS);
    }

    private static Map<String, String> ofTestKit(ClusterConfig config) {
        Map<String, String> configs = new LinkedHashMap<>(OF_TEST_KIT);
        if (config.brokerSecurityProtocol() == SecurityProtocol.SASL_PLAINTEXT)
            configs.putAll(OF_TEST_KIT_WITH_SASL);
        return configs;
    }

    // Life.

    @Override
    public void start() {
        if (started) return;
        started = true;
        String python = System.getProperty("cluster.python");
        File log = new File(System.getProperty("cluster.log"));
        try {
            process = new ProcessBuilder(python, "-m", "tests.kafka.cluster_tests.cluster", shape())
                .directory(new File(System.getProperty("cluster.checkout")))
                .redirectError(ProcessBuilder.Redirect.appendTo(log))
                .start();
            lines = process.inputReader();
            addresses = response();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Nodes nodes = new Nodes(this);
        List<Integer> ports = brokerBoundPorts();
        for (int id : brokerNumbers) brokers.put(id, nodes.broker(id, ports.get(brokers.size())));
        alive.putAll(brokers);
        ports = controllerBoundPorts();
        for (int id : controllerNumbers())
            controllers.put(id, nodes.controller(id, ports.get(id - FIRST_CONTROLLER)));
    }

    /** The cluster in JSON: ids as Kafka's TestKitNodes has them, configs of all and of each. */
    private String shape() throws IOException {
        ObjectNode shape = JSON.createObjectNode();
        Map<String, String> all = serverProperties();
        Map<String, Short> levels = new TreeMap<>();
        config.features().forEach((feature, level) -> levels.put(feature.featureName(), level));
        shape.put("protocol", config.brokerSecurityProtocol().name);
        shape.put("controller_protocol", config.controllerSecurityProtocol().name);
        shape.set("users", JSON.valueToTree(users()));
        shape.set("broker_ids", JSON.valueToTree(brokerNumbers));
        shape.set("controller_ids", JSON.valueToTree(controllerNumbers()));
        shape.set("config", JSON.valueToTree(all));
        shape.set("node_configs", JSON.valueToTree(config.perServerOverrideProperties()));
        shape.put("metadata_version", config.metadataVersion().version());
        shape.set("features", JSON.valueToTree(levels));
        formatted.forEach((name, value) -> shape.set(name, JSON.valueToTree(value)));
        return JSON.writeValueAsString(shape);
    }

    /** Who logs in: those whom the JAAS section of brokers names, else those of the test kit,
     *  or nobody: a test may list the users of its cluster. */
    private Map<String, String> users() {
        var modules = Configuration.getConfiguration()
            .getAppConfigurationEntry(JaasUtils.KAFKA_SERVER_CONTEXT_NAME);
        if (modules == null) {
            boolean isAsked = Stream.of(config.brokerSecurityProtocol(), config.controllerSecurityProtocol())
                .anyMatch(protocol -> protocol.name.startsWith("SASL"));
            return isAsked ? USERS_OF_TEST_KIT : Map.of();
        }
        Map<String, String> users = new LinkedHashMap<>();
        for (AppConfigurationEntry module : modules) {
            Map<String, ?> options = module.getOptions();
            if (options.containsKey("password"))
                users.put("" + options.get("username"), "" + options.get("password"));
            options.forEach((name, value) -> {
                if (name.startsWith("user_")) users.put(name.substring(5), "" + value);
            });
        }
        return users;
    }

    /** As the first user, by the first mechanism. */
    @Override
    public Map<String, Object> setClientSaslConfig(Map<String, Object> configs) {
        Map<String, Object> all = new LinkedHashMap<>(configs);
        if (config.brokerSecurityProtocol() == SecurityProtocol.PLAINTEXT) return all;
        Map<String, String> set = new LinkedHashMap<>(serverProperties());
        config.perServerOverrideProperties().values().forEach(set::putAll);
        String mechanism = set.get("sasl.enabled.mechanisms").split(",")[0];
        var user = users().entrySet().iterator().next();
        String module = mechanism.equals("PLAIN") ? "plain.Plain" : "scram.Scram";
        all.putIfAbsent("security.protocol", config.brokerSecurityProtocol().name);
        all.putIfAbsent("sasl.mechanism", mechanism);
        all.putIfAbsent("sasl.jaas.config", String.format(
            "org.apache.kafka.common.security.%sLoginModule required username='%s' password='%s';",
            module, user.getKey(), user.getValue()));
        return all;
    }

    Map<String, String> serverProperties() {
        Map<String, String> all = new LinkedHashMap<>(defaults);
        if (config.numDisksPerBroker() > 1)
            all.put("log.dirs", IntStream.range(0, config.numDisksPerBroker())
                .mapToObj(index -> "d" + index).collect(Collectors.joining(",")));
        all.putAll(config.serverProperties());
        return all;
    }

    @Override
    public void stop() {
        stopped = true;
        if (process == null) return;
        process.destroyForcibly();
        try {
            process.waitFor(WITHIN_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void shutdownBroker(int id) {
        // TestUtils.shutdownServers, at the end of a test: the process ends as a whole.
        if (Thread.currentThread().getName().startsWith("scala-execution-context")) return;
        if (alive.remove(id) == null) return;
        long epoch = ask("epoch " + id).asLong();
        ask("stop " + id);
        try {
            new CleanShutdownFileHandler(logDirectory(id).toString()).write(epoch);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    @Override
    public void startBroker(int id) {
        if (alive.putIfAbsent(id, brokers.get(id)) != null) return;
        boolean clean = new CleanShutdownFileHandler(logDirectory(id).toString()).exists();
        ask((clean ? "start " : "start-unclean ") + id);
    }

    void stopController(int id) {
        ask("stop " + id);
    }

    void startController(int id) {
        ask("start " + id);
    }

    /** A folder with nothing but the file of a clean shutdown, which tests delete. */
    Path logDirectory(int id) {
        try {
            return Files.createDirectories(Path.of("logs-of-" + process.pid(), "" + id));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A line for the process and what it answers, which is null for what is only done. */
    synchronized JsonNode ask(String line) {
        try {
            process.outputWriter().write(line + "\n");
            process.outputWriter().flush();
            return response().get("value");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    int leaderEpoch(TopicPartition partition) {
        return ask("leader-epoch " + partition).asInt();
    }

    /** Bring the meter of the controllers up to date, which tests read after a leader changed. */
    void countUncleanElections() {
        uncleanElections.mark(ask("unclean-elections").asLong() - uncleanElections.count());
    }

    private JsonNode response() throws IOException {
        String line = lines.readLine();
        if (line == null)
            throw new RuntimeException("it has ended: " + System.getProperty("cluster.log"));
        JsonNode response = JSON.readTree(line);
        if (response.has("left_out"))
            RaftClusterInvocationContext.leaveOut(response.get("left_out").asText());
        if (response.has("error")) throw new RuntimeException(response.get("error").asText());
        return response;
    }

    // What it is.

    Set<Integer> controllerNumbers() {
        return numbers(FIRST_CONTROLLER, config.numControllers());
    }

    private static Set<Integer> numbers(int first, int count) {
        return IntStream.range(first, first + count).boxed()
            .collect(Collectors.toCollection(TreeSet::new));
    }

    private static List<Integer> ports(String addresses) {
        return Arrays.stream(addresses.split(","))
            .map(address -> address.substring(address.lastIndexOf(':') + 1))
            .map(Integer::parseInt).toList();
    }

    @Override public Type type() { return Type.KRAFT; }
    @Override public ClusterConfig config() { return config; }
    @Override public Map<Integer, KafkaBroker> brokers() { return brokers; }
    @Override public Map<Integer, KafkaBroker> aliveBrokers() { return alive; }
    @Override public Map<Integer, ControllerServer> controllers() { return controllers; }
    @Override public Set<Integer> brokerIds() { return brokers.keySet(); }
    @Override public Set<Integer> controllerIds() { return controllers.keySet(); }
    @Override public ListenerName clientListener() { return config.brokerListenerName(); }
    @Override public String bootstrapServers() { return addresses.get("brokers").asText(); }
    @Override public String clusterId() { return addresses.get("cluster_id").asText(); }
    @Override public List<Integer> brokerBoundPorts() { return ports(bootstrapServers()); }
    @Override public boolean started() { return started; }
    @Override public boolean stopped() { return stopped; }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String bootstrapControllers() {
        return addresses.get("controllers").asText();
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        return ports(bootstrapControllers());
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    // What Kafka waits for by a look into its brokers' caches. cluster.py answers when it is ready.

    @Override public void waitForReadyBrokers() { }

    @Override
    public void ensureConsistentMetadata() {
        ask("publish");
    }

    @Override
    public void ensureConsistentMetadata(
        Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) {
        ensureConsistentMetadata();
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        until(() -> describe(topic).isEmpty(), topic + " is not deleted");
        ensureConsistentMetadata();
    }

    @Override
    public void waitTopicCreation(String topic, int count) throws InterruptedException {
        until(() -> describe(topic).filter(d -> d.partitions().size() == count).isPresent(),
            topic + " is not created");
        ensureConsistentMetadata();
    }

    private static void until(Callable<Boolean> holds, String what) throws InterruptedException {
        TestUtils.waitForCondition(holds::call, WITHIN_MS, what);
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        try (Admin admin = admin()) {
            var levels = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            return levels.containsKey(GroupVersion.FEATURE_NAME)
                ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER)
                : Set.of(GroupProtocol.CLASSIC);
        } catch (InterruptedException | ExecutionException e) {
            throw new RuntimeException(e);
        }
    }

    MetadataVersion metadataVersion() throws InterruptedException, ExecutionException {
        try (Admin admin = admin()) {
            var levels = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            return MetadataVersion.fromFeatureLevel(
                levels.get(MetadataVersion.FEATURE_NAME).maxVersionLevel());
        }
    }

    LeaderAndEpoch activeController() throws InterruptedException, ExecutionException {
        try (Admin admin = admin()) {
            QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
            return new LeaderAndEpoch(
                OptionalInt.of(quorum.leaderId()), (int) quorum.leaderEpoch());
        }
    }

    @Override
    public int getLeaderBrokerId(TopicPartition partition) throws InterruptedException {
        return describe(partition.topic()).orElseThrow()
            .partitions().get(partition.partition()).leader().id();
    }

    /** The brokers, those that are fenced as well. */
    Collection<Node> registered() throws InterruptedException, ExecutionException {
        try (Admin admin = admin()) {
            var all = new DescribeClusterOptions().includeFencedBrokers(true);
            return admin.describeCluster(all).nodes().get();
        }
    }

    /** The configs of a topic as its logs have them. */
    Collection<ConfigEntry> configsOf(String topic)
        throws InterruptedException, ExecutionException {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = admin()) {
            return admin.describeConfigs(List.of(resource)).all().get().get(resource).entries();
        }
    }

    /** What a controller does for a test that calls it. */
    CompletableFuture<Map<ConfigResource, ApiError>> alter(
        Map<ConfigResource, Map<String, Map.Entry<AlterConfigOp.OpType, String>>> changes,
        boolean validateOnly) {
        Map<ConfigResource, Collection<AlterConfigOp>> operations = new LinkedHashMap<>();
        changes.forEach((resource, ofResource) -> operations.put(
            resource,
            ofResource.entrySet().stream()
                .map(each -> new AlterConfigOp(
                    new ConfigEntry(each.getKey(), each.getValue().getValue()),
                    each.getValue().getKey()))
                .toList()));
        Map<ConfigResource, ApiError> errors = new LinkedHashMap<>();
        try (Admin admin = admin(Map.of(), true)) {
            var options = new AlterConfigsOptions().validateOnly(validateOnly);
            admin.incrementalAlterConfigs(operations, options).values().forEach(
                (resource, done) -> errors.put(resource, errorOf(done)));
        }
        return CompletableFuture.completedFuture(errors);
    }

    private static ApiError errorOf(KafkaFuture<Void> done) {
        try {
            done.get();
            return ApiError.NONE;
        } catch (InterruptedException | ExecutionException error) {
            return ApiError.fromThrowable(error.getCause());
        }
    }

    Optional<TopicDescription> describe(String topic) throws InterruptedException {
        try (Admin admin = admin()) {
            var descriptions = admin.describeTopics(List.of(topic)).allTopicNames();
            return Optional.of(descriptions.get().get(topic));
        } catch (ExecutionException e) {
            return Optional.empty();
        }
    }

    Collection<TopicListing> listings() throws InterruptedException, ExecutionException {
        try (Admin admin = admin()) {
            return admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get();
        }
    }

    /** The value that a broker obeys. */
    String configOf(int broker, String name) throws InterruptedException, ExecutionException {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, "" + broker);
        try (Admin admin = admin()) {
            return admin.describeConfigs(List.of(resource)).all().get().get(resource)
                .get(name).value();
        }
    }

    /** The ACLs as a broker shows them. */
    Collection<AclBinding> acls(AclBindingFilter filter)
            throws InterruptedException, ExecutionException {
        ensureConsistentMetadata();
        try (Admin admin = admin()) {
            return admin.describeAcls(filter).values().get();
        }
    }

    static int leaderOf(TopicPartitionInfo partition) {
        Node leader = partition.leader();
        return leader == null || leader.isEmpty() ? LeaderAndIsr.NO_LEADER : leader.id();
    }
}
