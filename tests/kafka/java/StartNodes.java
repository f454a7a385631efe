import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/** Nodes of Apache Kafka in one process, each from its server.properties, until standard input ends. */
public class StartNodes {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties properties = Utils.loadProps(file);
            properties.putIfAbsent("log.cleaner.dedupe.buffer.size", "4194304");
            KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(properties), Time.SYSTEM);
            Thread starting = new Thread(() -> {
                server.startup();
                System.out.println("started " + properties.get("node.id"));
            });
            starting.setDaemon(true);
            starting.start();
        }
        while (System.in.read() >= 0) { }
        Runtime.getRuntime().halt(0);
    }
}
