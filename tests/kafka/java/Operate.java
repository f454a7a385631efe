import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Operates a cluster by Kafka's admin client, of any release from 3.3 on: a command a line. */
public class Operate {
    static Admin admin;
    static String servers;

    static List<Integer> ids(String text) {
        return Arrays.stream(text.split(",")).map(Integer::valueOf).collect(Collectors.toList());
    }

    static Object set(ConfigResource.Type type, String name, String key, String value) throws Exception {
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
        return admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(op))).all().get();
    }

    static Object raise(String feature, short level) throws Exception {
        FeatureUpdate update = new FeatureUpdate(level, FeatureUpdate.UpgradeType.UPGRADE);
        return admin.updateFeatures(Map.of(feature, update), new UpdateFeaturesOptions()).all().get();
    }

    static Object produce(String topic, int count) throws Exception {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", servers, "enable.idempotence", true, "delivery.timeout.ms", 20000,
            "request.timeout.ms", 10000, "linger.ms", 0,
            "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class);
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
            for (int n = 0; n < count; n++) {
                producer.send(new ProducerRecord<>(topic, new byte[] {(byte) n})).get();
            }
        }
        return count;
    }

    /** Partitions with an ISR smaller than their replicas, or with no leader. */
    static long unsettled() throws Exception {
        Set<String> names = admin.listTopics().names().get();
        return admin.describeTopics(names).allTopicNames().get().values().stream()
            .flatMap(topic -> topic.partitions().stream())
            .filter(each -> each.leader() == null || each.isr().size() < each.replicas().size())
            .count();
    }

    static Object levels() throws Exception {
        FeatureMetadata features = admin.describeFeatures().featureMetadata().get();
        return new TreeMap<>(features.supportedFeatures()).entrySet().stream()
            .map(each -> each.getKey() + "=" + each.getValue().maxVersion())
            .collect(Collectors.joining(" "));
    }

    static Object call(String[] words) throws Exception {
        switch (words[0]) {
            case "create": {
                NewTopic topic = new NewTopic(words[1], Integer.parseInt(words[2]), Short.parseShort(words[3]));
                return admin.createTopics(List.of(topic)).all().get();
            }
            case "delete":
                return admin.deleteTopics(List.of(words[1])).all().get();
            case "partitions":
                return admin.createPartitions(
                    Map.of(words[1], NewPartitions.increaseTo(Integer.parseInt(words[2])))).all().get();
            case "move": {
                Optional<NewPartitionReassignment> target = words[3].equals("cancel")
                    ? Optional.empty() : Optional.of(new NewPartitionReassignment(ids(words[3])));
                TopicPartition partition = new TopicPartition(words[1], Integer.parseInt(words[2]));
                return admin.alterPartitionReassignments(Map.of(partition, target)).all().get();
            }
            case "moving":
                return admin.listPartitionReassignments().reassignments().get().size();
            case "elect":
                return admin.electLeaders(ElectionType.valueOf(words[1].toUpperCase()), null).partitions().get().size();
            case "topic-config":
                return set(ConfigResource.Type.TOPIC, words[1], words[2], words[3]);
            case "broker-config":
                return set(ConfigResource.Type.BROKER, words[1].equals("all") ? "" : words[1], words[2], words[3]);
            case "quota": {
                ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, words[1]));
                ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op("producer_byte_rate", 1e6);
                return admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(op)))).all().get();
            }
            case "produce":
                return produce(words[1], Integer.parseInt(words[2]));
            case "raise":
                return raise(words[1], Short.parseShort(words[2]));
            case "unregister":
                return admin.unregisterBroker(Integer.parseInt(words[1])).all().get();
            case "levels":
                return levels();
            case "unsettled":
                return unsettled();
            case "brokers":
                return admin.describeCluster().nodes().get().size();
            case "controller":
                return admin.describeMetadataQuorum().quorumInfo().get().leaderId();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        properties.put("request.timeout.ms", "10000");
        properties.put("default.api.timeout.ms", "20000");
        admin = Admin.create(properties);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String result;
            try {
                result = "ok " + call(line.trim().split(" "));
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                result = "! " + cause.getClass().getSimpleName() + ": " + cause.getMessage();
            }
            System.out.println(result.replace('\n', ' '));
            System.out.flush();
        }
        System.exit(0);
    }
}
