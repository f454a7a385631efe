package org.apache.kafka.raft;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import minicluster.lines.LineProgram;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords;
import org.apache.kafka.common.utils.Utils;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;

import static org.apache.kafka.common.record.internal.ControlRecordUtils.deserializeKRaftVersionRecord;
import static org.apache.kafka.common.record.internal.ControlRecordUtils.deserializeLeaderChangeMessage;
import static org.apache.kafka.common.record.internal.ControlRecordUtils.deserializeVotersRecord;

/** Kafka's JSON of messages, with records as the transcripts have them. */
class QuorumForms {
    static ApiMessage read(ApiKeys api, String kind, short version, JsonNode body) throws Exception {
        boolean isFetch = api == ApiKeys.FETCH && kind.equals("Response");
        boolean isSnapshot = api == ApiKeys.FETCH_SNAPSHOT && kind.equals("Response");
        JsonNode plain = body.deepCopy();
        if (isFetch) blank(plain.get("responses"), "records");
        if (isSnapshot) blank(plain.get("topics"), "unalignedRecords");
        ApiMessage message = (ApiMessage) converter(api, kind).getMethod("read", JsonNode.class, short.class).invoke(null, plain, version);
        if (isFetch) {
            int t = 0;
            for (var topic : ((FetchResponseData) message).responses()) {
                int p = 0;
                for (var partition : topic.partitions())
                    partition.setRecords(records(body.get("responses").get(t).get("partitions").get(p++).get("records")));
                t++;
            }
        }
        if (isSnapshot) {
            int t = 0;
            for (var topic : ((FetchSnapshotResponseData) message).topics()) {
                int p = 0;
                for (var partition : topic.partitions()) {
                    JsonNode bytes = body.get("topics").get(t).get("partitions").get(p++).get("unalignedRecords");
                    partition.setUnalignedRecords(MemoryRecords.readableRecords(
                        ByteBuffer.wrap(bytes.isNull() ? new byte[0] : Base64.getDecoder().decode(bytes.asText()))));
                }
                t++;
            }
        }
        return message;
    }

    private static void blank(JsonNode topics, String name) {
        for (JsonNode topic : topics)
            for (JsonNode partition : topic.get("partitions"))
                ((ObjectNode) partition).put(name, "").remove(name + "SizeInBytes");
    }

    static JsonNode write(ApiMessage message, String kind, short version) {
        List<String> snapshots = new ArrayList<>();
        if (message instanceof FetchSnapshotResponseData response)
            for (var topic : response.topics())
                for (var partition : topic.partitions()) {
                    snapshots.add(bytes(partition.unalignedRecords()));
                    // The converter asks for a size, and an error has no records.
                    if (partition.unalignedRecords() == null) partition.setUnalignedRecords(MemoryRecords.EMPTY);
                }
        JsonNode form;
        try {
            form = (JsonNode) converter(ApiKeys.forId(message.apiKey()), kind).
                getMethod("write", message.getClass(), short.class, boolean.class).invoke(null, message, version, false);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(message.toString(), e);
        }
        if (message instanceof FetchResponseData response) {
            int t = 0;
            for (var topic : response.responses()) {
                int p = 0;
                for (var partition : topic.partitions())
                    ((ObjectNode) form.get("responses").get(t).get("partitions").get(p++)).set("records", batches(partition.records()));
                t++;
            }
        }
        Iterator<String> each = snapshots.iterator();
        if (message instanceof FetchSnapshotResponseData)
            for (JsonNode topic : form.get("topics"))
                for (JsonNode partition : topic.get("partitions"))
                    ((ObjectNode) partition).put("unalignedRecords", each.next());
        return form;
    }

    private static Class<?> converter(ApiKeys api, String kind) throws ClassNotFoundException {
        StringBuilder name = new StringBuilder("org.apache.kafka.common.message.");
        for (String word : api.name().split("_")) name.append(word.charAt(0)).append(word.substring(1).toLowerCase(java.util.Locale.ROOT));
        return Class.forName(name + kind + "DataJsonConverter");
    }

    private static String bytes(BaseRecords records) {
        if (records == null) return null;
        ByteBuffer buffer = records instanceof UnalignedMemoryRecords unaligned ? unaligned.buffer() : ((MemoryRecords) records).buffer();
        return Base64.getEncoder().encodeToString(Utils.toArray(buffer.duplicate()));
    }

    // --- batches ----------------------------------------------------------------------------------

    private static MemoryRecords records(JsonNode batches) {
        ByteBuffer all = ByteBuffer.allocate(1 << 20);
        for (JsonNode batch : batches) {
            boolean isControl = batch.has("control");
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
                TimestampType.CREATE_TIME, batch.get("base").asLong(), 0, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
                RecordBatch.NO_SEQUENCE, false, isControl, batch.get("epoch").asInt());
            if (isControl) for (JsonNode record : batch.get("control")) append(builder, record.get("type").asText(), record.get("data"));
            else for (JsonNode record : batch.get("records")) builder.append(new SimpleRecord(0, record.asText().getBytes(StandardCharsets.UTF_8)));
            all.put(builder.build().buffer());
        }
        return MemoryRecords.readableRecords(all.flip());
    }

    private static void append(MemoryRecordsBuilder builder, String type, JsonNode data) {
        switch (ControlRecordType.valueOf(type)) {
            case LEADER_CHANGE -> builder.appendLeaderChangeMessage(0, LeaderChangeMessageJsonConverter.read(data, LeaderChangeMessage.HIGHEST_SUPPORTED_VERSION));
            case KRAFT_VERSION -> builder.appendKRaftVersionMessage(0, KRaftVersionRecordJsonConverter.read(data, KRaftVersionRecord.HIGHEST_SUPPORTED_VERSION));
            case KRAFT_VOTERS -> builder.appendVotersMessage(0, VotersRecordJsonConverter.read(data, VotersRecord.HIGHEST_SUPPORTED_VERSION));
            default -> throw new IllegalArgumentException(type);
        }
    }

    private static ArrayNode batches(BaseRecords records) {
        ArrayNode shown = LineProgram.JSON.createArrayNode();
        if (records == null) return shown;
        for (RecordBatch batch : ((MemoryRecords) records).batches()) {
            ObjectNode one = shown.addObject().
                put("base", batch.baseOffset()).put("last", batch.lastOffset()).put("epoch", batch.partitionLeaderEpoch()).put("size", batch.sizeInBytes());
            ArrayNode rows = one.putArray(batch.isControlBatch() ? "control" : "records");
            for (Record record : batch) {
                if (batch.isControlBatch()) {
                    ControlRecordType type = ControlRecordType.parse(record.key());
                    rows.addObject().put("type", type.name()).set("data", control(type, record));
                } else rows.add(StandardCharsets.UTF_8.decode(record.value()).toString());
            }
        }
        return shown;
    }

    private static JsonNode control(ControlRecordType type, Record record) {
        return switch (type) {
            case LEADER_CHANGE -> LeaderChangeMessageJsonConverter.write(deserializeLeaderChangeMessage(record), LeaderChangeMessage.HIGHEST_SUPPORTED_VERSION);
            case KRAFT_VERSION -> KRaftVersionRecordJsonConverter.write(deserializeKRaftVersionRecord(record), KRaftVersionRecord.HIGHEST_SUPPORTED_VERSION);
            case KRAFT_VOTERS -> VotersRecordJsonConverter.write(deserializeVotersRecord(record), VotersRecord.HIGHEST_SUPPORTED_VERSION);
            default -> throw new IllegalArgumentException(type.toString());
        };
    }
}
