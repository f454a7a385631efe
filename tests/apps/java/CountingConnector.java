package minicluster.apps;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A source of the numbers 0, 1, 2, … up to a last one, which continues at its committed offset. */
public class CountingConnector extends SourceConnector {
    private Map<String, String> config;

    @Override public String version() { return "1"; }
    @Override public void start(Map<String, String> config) { this.config = config; }
    @Override public void stop() { }
    @Override public Class<? extends Task> taskClass() { return Counting.class; }
    @Override public List<Map<String, String>> taskConfigs(int max) { return List.of(config); }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) { return ExactlyOnceSupport.SUPPORTED; }

    public static class Counting extends SourceTask {
        private static final Map<String, String> PARTITION = Map.of("numbers", "all");
        private static final int BATCH = 10;
        private String topic;
        private long count;
        private long next;

        @Override public String version() { return "1"; }
        @Override public void stop() { }

        @Override
        public void start(Map<String, String> config) {
            topic = config.get("topic");
            count = Long.parseLong(config.get("count"));
            Map<String, Object> offset = context.offsetStorageReader().offset(PARTITION);
            next = offset == null ? 0 : (Long) offset.get("next");
        }

        /** Some numbers, with a pause that leaves time to kill the worker in their midst. */
        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(20);
            List<SourceRecord> records = new ArrayList<>();
            for (int i = 0; i < BATCH && next < count; i++, next++)
                records.add(new SourceRecord(PARTITION, Map.of("next", next + 1), topic, null, Schema.STRING_SCHEMA, Long.toString(next)));
            return records.isEmpty() ? null : records;
        }
    }
}
