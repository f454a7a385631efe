package org.apache.kafka.common.test;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.test.junit.OtherProcess;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.test.TestUtils;
import org.opentest4j.TestAbortedException;

/**
 * Stands before Kafka's class of this name on the class path, so that a test that builds its
 * cluster itself gets one of another process, with the ids, directories and configs it asks for.
 */
public class KafkaClusterTestKit implements AutoCloseable {
    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> configs = new HashMap<>();
        private Map<Integer, Uuid> voters = Map.of();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String name, Object value) {
            configs.put(name, value.toString());
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            if (standalone) {
                TestKitNode first = nodes.controllerNodes().values().iterator().next();
                voters = Map.of(first.id(), first.metadataDirectoryId());
            }
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> initialVoters) {
            voters = initialVoters;
            return this;
        }

        public Builder setDeleteOnClose(boolean delete) {
            return this;
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(this);
        }
    }

    private final TestKitNodes nodes;
    private final OtherProcess cluster;
    private final MockFaultHandler faults = new MockFaultHandler("faults of another process");

    private KafkaClusterTestKit(Builder builder) {
        nodes = builder.nodes;
        if (nodes.brokerNodes().keySet().stream().anyMatch(nodes::isCombined))
            throw new TestAbortedException("combined nodes: isolated ones play it");
        Map<Feature, Short> levels = new HashMap<>();
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            short level = nodes.bootstrapMetadata().featureLevel(feature.featureName());
            if (level > 0) levels.put(feature, level);
        }
        Map<Integer, Map<String, String>> ofNodes = new HashMap<>();
        Map<Integer, List<Uuid>> directories = new HashMap<>();
        nodes.controllerNodes().forEach((id, node) -> {
            ofNodes.put(id, withoutPlace(node));
            directories.put(id, List.of(node.metadataDirectoryId()));
        });
        nodes.brokerNodes().forEach((id, node) -> {
            var ofDirectories = new TreeMap<>(node.initialMetaPropertiesEnsemble().logDirProps());
            Map<String, String> ofBroker = withoutPlace(node);
            ofBroker.put("log.dirs", String.join(",", ofDirectories.keySet()));
            ofNodes.put(id, ofBroker);
            directories.put(id, ofDirectories.values().stream()
                .map(MetaProperties::directoryId).map(each -> each.orElseThrow()).toList());
        });
        Map<String, Object> formatted = new HashMap<>();
        formatted.put("cluster_id", nodes.clusterId());
        formatted.put("directory_ids", texts(directories));
        formatted.put("initial_voters", builder.voters.entrySet().stream().collect(
            Collectors.toMap(Map.Entry::getKey, each -> each.getValue().toString())));
        cluster = new OtherProcess(
            ClusterConfig.defaultBuilder()
                .setTypes(Set.of(Type.KRAFT))
                .setBrokers(nodes.brokerNodes().size())
                .setControllers(nodes.controllerNodes().size())
                .setBrokerListenerName(nodes.brokerListenerName())
                .setServerProperties(builder.configs)
                .setMetadataVersion(nodes.bootstrapMetadata().metadataVersion())
                .setFeatures(levels)
                .setPerServerProperties(ofNodes)
                .build(),
            formatted);
    }

    /** The configs of a node but for its place, which it has by itself. */
    private static Map<String, String> withoutPlace(TestKitNode node) {
        Map<String, String> configs = new HashMap<>(node.propertyOverrides());
        String listeners = configs.remove("listeners");
        String advertised = configs.remove("advertised.listeners");
        if (advertised != null && !advertised.equals(listeners))
            throw new TestAbortedException("a broker tells of another place than it listens at");
        return configs;
    }

    private static Map<Integer, List<String>> texts(Map<Integer, List<Uuid>> directories) {
        return directories.entrySet().stream().collect(Collectors.toMap(
            Map.Entry::getKey, each -> each.getValue().stream().map(Uuid::toString).toList()));
    }

    /** Starts the process, which may say why the test is left out; a test may expect errors later. */
    public void format() {
        cluster.start();
    }

    public void startup() { }

    public void waitForReadyBrokers() {
        cluster.waitForReadyBrokers();
    }

    public Controller waitForActiveController() throws InterruptedException {
        TestUtils.waitForCondition(
            () -> active().leaderId().isPresent(), "there is no active controller");
        return controllers().get(active().leaderId().getAsInt()).controller();
    }

    private LeaderAndEpoch active() {
        return raftManagers().values().iterator().next().client().leaderAndEpoch();
    }

    @Override
    public void close() {
        cluster.stop();
    }

    public Admin admin() {
        return cluster.admin();
    }

    public Admin admin(Map<String, Object> configs) {
        return cluster.admin(configs);
    }

    public Admin admin(Map<String, Object> configs, boolean usingBootstrapControllers) {
        return cluster.admin(configs, usingBootstrapControllers);
    }

    public String bootstrapServers() {
        return cluster.bootstrapServers();
    }

    public String bootstrapControllers() {
        return cluster.bootstrapControllers();
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public Map<Integer, ControllerServer> controllers() {
        return cluster.controllers();
    }

    public Map<Integer, BrokerServer> brokers() {
        Map<Integer, BrokerServer> brokers = new TreeMap<>();
        cluster.brokers().forEach((id, broker) -> brokers.put(id, (BrokerServer) broker));
        return brokers;
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> managers = new TreeMap<>();
        brokers().forEach((id, broker) -> managers.put(id, broker.raftManager()));
        controllers().forEach((id, controller) ->
            managers.put(id, controller.sharedServer().raftManager()));
        return managers;
    }

    public MockFaultHandler fatalFaultHandler() {
        return faults;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return faults;
    }
}
