import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member with Kafka's Java client: says in lines of JSON what happens to it, and leaves when its input ends.
 *
 * <p>Arguments: bootstrap servers, group, client id, the assignor's class, and the topics.
 */
public final class JavaMember implements ConsumerRebalanceListener {
    public static void main(String[] arguments) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[1],
            "client.id", arguments[2],
            "partition.assignment.strategy", arguments[3],
            "auto.offset.reset", "earliest",
            "session.timeout.ms", 6000,
            "heartbeat.interval.ms", 100,
            "fetch.max.wait.ms", 50,
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class);
        List<String> topics = List.of(arguments).subList(4, arguments.length);
        AtomicBoolean leaving = whetherInputHasEnded();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(topics, new JavaMember());
            while (!leaving.get())
                consumed(consumer.poll(Duration.ofMillis(100)));
        }
    }

    private static AtomicBoolean whetherInputHasEnded() {
        AtomicBoolean ended = new AtomicBoolean();
        Thread reader = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException broken) {
                System.err.println(broken);
            }
            ended.set(true);
        });
        reader.setDaemon(true);
        reader.start();
        return ended;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("assign", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        say("revoke", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        say("lost", partitions);
    }

    private static void say(String event, Collection<TopicPartition> partitions) {
        System.out.println(partitions.stream()
            .map(partition -> String.format("[\"%s\", %d]", partition.topic(), partition.partition()))
            .collect(Collectors.joining(", ", "{\"event\": \"" + event + "\", \"what\": [", "]}")));
    }

    private static void consumed(ConsumerRecords<byte[], byte[]> records) {
        if (!records.isEmpty())
            System.out.println(StreamSupport.stream(records.spliterator(), false)
                .map(record -> String.format("[\"%s\", %d, %d]", record.topic(), record.partition(), record.offset()))
                .collect(Collectors.joining(", ", "{\"event\": \"consumed\", \"what\": [", "]}")));
    }
}
