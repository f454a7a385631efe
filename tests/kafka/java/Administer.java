import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.config.ConfigResource;

/** Calls of Kafka's admin client to controllers (KIP-919): one line of output for each. */
public class Administer {
    static void show(String name, Callable<Object> call) {
        try {
            System.out.println(name + ": " + call.call());
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            System.out.println(name + "! " + cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.controllers", args[0]);
        properties.put("request.timeout.ms", "20000");
        properties.put("default.api.timeout.ms", "40000");
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource node = new ConfigResource(ConfigResource.Type.BROKER, args[1]);
        try (Admin admin = Admin.create(properties)) {
            show("cluster", () -> admin.describeCluster().nodes().get().stream()
                .map(each -> each.id() + "@" + each.host() + ":" + each.port()).sorted().toList());
            show("controller", () -> admin.describeCluster().controller().get().id());
            show("voters", () -> admin.describeMetadataQuorum().quorumInfo().get().voters().stream()
                .map(QuorumInfo.ReplicaState::replicaId).sorted().toList());
            show("features", () -> admin.describeFeatures().featureMetadata().get()
                .finalizedFeatures().get("metadata.version").maxVersionLevel());
            AlterConfigOp set = new AlterConfigOp(
                new ConfigEntry("log.retention.ms", "86400000"), AlterConfigOp.OpType.SET);
            show("alter", () -> admin.incrementalAlterConfigs(Map.of(all, List.of(set))).all().get());
            show("config", () -> admin.describeConfigs(List.of(node)).all().get().get(node)
                .get("log.retention.ms").value());
            show("level", () -> admin.updateFeatures(
                Map.of("metadata.version", new FeatureUpdate((short) 99, FeatureUpdate.UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions()).all().get());
            show("unregister", () -> admin.unregisterBroker(77).all().get());
            show("remove", () -> admin.removeRaftVoter(
                Integer.parseInt(args[1]), org.apache.kafka.common.Uuid.randomUuid()).all().get());
        }
    }
}
