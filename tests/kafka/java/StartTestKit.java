import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;

/**
 * Apache Kafka's cluster for its own tests, started again and again in one process: three controllers, three brokers,
 * a topic with its full ISR. Prints for each round the milliseconds of the processor and of the clock until then, and
 * those of the processor with the stop.
 */
public class StartTestKit {
    public static void main(String[] arguments) throws Exception {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int round = 0; round < Integer.parseInt(arguments[0]); round++) {
            long processor = system.getProcessCpuTime();
            long clock = System.nanoTime();
            TestKitNodes nodes = new TestKitNodes.Builder().setNumControllerNodes(3).setNumBrokerNodes(3).build();
            long startedProcessor;
            long startedClock;
            try (KafkaClusterTestKit cluster = new KafkaClusterTestKit.Builder(nodes).build()) {
                cluster.format();
                cluster.startup();
                cluster.waitForReadyBrokers();
                try (Admin admin = cluster.admin()) {
                    NewTopic orders = new NewTopic("orders", 1, (short) 3).configs(Map.of("min.insync.replicas", "2"));
                    admin.createTopics(List.of(orders)).all().get();
                    while (!isFullyInSync(admin)) {
                        Thread.sleep(5);
                    }
                }
                startedProcessor = system.getProcessCpuTime();
                startedClock = System.nanoTime();
            }
            System.out.printf(
                "started %d %d %d%n",
                (startedProcessor - processor) / 1_000_000,
                (startedClock - clock) / 1_000_000,
                (system.getProcessCpuTime() - processor) / 1_000_000);
        }
        Runtime.getRuntime().halt(0);
    }

    private static boolean isFullyInSync(Admin admin) throws Exception {
        try {
            var orders = admin.describeTopics(List.of("orders")).allTopicNames().get().get("orders");
            return orders.partitions().get(0).isr().size() == 3;
        } catch (java.util.concurrent.ExecutionException metadataIsNotThereYet) {
            return false;
        }
    }
}
