package kafka.server;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import kafka.integration.KafkaServerTestHarness;
import kafka.utils.Logging;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.test.junit.OtherProcess;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.fault.FaultHandler;
import org.opentest4j.TestAbortedException;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Stands before Kafka's class of this name on the class path, so that a KafkaServerTestHarness gets
 * the brokers of another process, with the configs, features and version that it asks for.
 *
 * Its own controller, which has started by then, is shut down; its configs are passed on.
 */
public class KRaftQuorumImplementation implements QuorumImplementation {
    // The places of a node, which the other process chooses.
    private static final Set<String> OF_PLACES = Set.of(
        "node.id", "broker.id", "process.roles", "listeners", "advertised.listeners",
        "listener.security.protocol.map", "inter.broker.listener.name",
        "controller.listener.names", "controller.quorum.voters",
        "controller.quorum.bootstrap.servers", "log.dir", "log.dirs", "metadata.log.dir",
        "security.inter.broker.protocol");

    private final Map<String, String> ofController;
    private final BootstrapMetadata bootstrap;
    private final Logging harness;
    private OtherProcess cluster;

    public KRaftQuorumImplementation(
        ControllerServer controllerServer, FaultHandlerFactory faultHandlerFactory,
        File metadataDir, CompletableFuture<Map<Integer, InetSocketAddress>> voters,
        String clusterId, Logging log, FaultHandler faultHandler) {
        ofController = settings(controllerServer.config());
        bootstrap = controllerServer.bootstrapMetadata();
        harness = log;
        Utils.swallow(null, null, "the controller of the test", controllerServer::shutdown);
    }

    public ControllerServer controllerServer() {
        return cluster.controllers().values().iterator().next();
    }

    @Override
    public KafkaBroker createBroker(
        KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
        if (cluster == null) {
            ClusterConfig shape = shape(config);
            Set<Integer> ids = new HashSet<>(shape.perServerOverrideProperties().keySet());
            ids.remove(OtherProcess.FIRST_CONTROLLER);
            cluster = new OtherProcess(shape, ids);
            cluster.start();
        }
        KafkaBroker broker = cluster.brokers().get(config.nodeId());
        if (broker == null) throw new TestAbortedException("another broker is created later");
        return broker;
    }

    @Override
    public void shutdown() {
        if (cluster != null) cluster.stop();
    }

    /** The cluster that the harness describes; one of a single broker, where it does not. */
    private ClusterConfig shape(KafkaConfig first) {
        List<KafkaConfig> configs = harness instanceof KafkaServerTestHarness described
            ? CollectionConverters.asJava(described.configs()) : List.of(first);
        SecurityProtocol protocol = first.interBrokerSecurityProtocol();
        if (protocol != SecurityProtocol.PLAINTEXT && protocol != SecurityProtocol.SASL_PLAINTEXT)
            throw new TestAbortedException("nodes listen on " + protocol);
        Map<Integer, Map<String, String>> ofNodes = new HashMap<>();
        ofNodes.put(OtherProcess.FIRST_CONTROLLER, ofController);
        for (KafkaConfig config : configs) {
            Map<String, String> ofBroker = settings(config);
            ofBroker.put("log.dirs", config.logDirs().stream()
                .map(directory -> new File(directory).getAbsolutePath())
                .collect(Collectors.joining(",")));
            ofNodes.put(config.nodeId(), ofBroker);
        }
        Map<Feature, Short> levels = new HashMap<>();
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            short level = bootstrap.featureLevel(feature.featureName());
            if (level > 0) levels.put(feature, level);
        }
        return ClusterConfig.defaultBuilder()
            .setTypes(Set.of(Type.KRAFT))
            .setBrokers(configs.size())
            .setControllers(1)
            .setBrokerSecurityProtocol(protocol)
            .setBrokerListenerName(first.interBrokerListenerName())
            .setMetadataVersion(bootstrap.metadataVersion())
            .setFeatures(levels)
            .setPerServerProperties(ofNodes)
            .build();
    }

    private static Map<String, String> settings(KafkaConfig config) {
        Map<String, String> settings = new HashMap<>();
        config.originals().forEach((name, value) -> {
            if (!OF_PLACES.contains(name)) settings.put(name, value.toString());
        });
        return settings;
    }
}
