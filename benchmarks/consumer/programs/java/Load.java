import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes a message to every partition of a topic, again and again, until its standard input ends.
 *
 * In Java, since its producer puts the messages of all partitions into one request; librdkafka's makes one for each, and
 * thousands of them a second would keep the broker busy.
 */
public final class Load {
    private static final byte[] VALUE = new byte[20];
    /** Longer than the broker's log.index.interval.bytes: the next message gets an index entry. */
    private static final byte[] INDEXED_VALUE = new byte[8192];
    private static final long FIRST_ROUND_SECONDS = 30;

    public static void main(String[] arguments)
            throws InterruptedException, ExecutionException, TimeoutException {
        Map<String, String> given = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        endWithStandardInput();
        Map<String, Object> config = Map.of("bootstrap.servers", given.get("servers"), "linger.ms", 5);
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        String topic = given.get("topic");
        int partitions = Integer.parseInt(given.get("partitions"));
        // The first index entries of all partitions, which would block a measurement on some disks.
        for (byte[] value : List.of(INDEXED_VALUE, VALUE))
            for (Future<RecordMetadata> written : write(producer, topic, partitions, value))
                written.get(FIRST_ROUND_SECONDS, TimeUnit.SECONDS);
        System.out.println("ready");
        long interval = (long) (Double.parseDouble(given.get("interval")) * 1e9);
        for (long due = System.nanoTime() + interval; ; due = Math.max(due + interval, System.nanoTime())) {
            LockSupport.parkNanos(due - System.nanoTime());
            write(producer, topic, partitions, VALUE);
        }
    }

    private static List<Future<RecordMetadata>> write(
            KafkaProducer<byte[], byte[]> producer, String topic, int partitions, byte[] value) {
        List<Future<RecordMetadata>> written = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++)
            written.add(producer.send(new ProducerRecord<>(topic, partition, null, value)));
        return written;
    }

    private static void endWithStandardInput() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException ended) {
                // the same
            }
            System.exit(0);
        });
        watch.setDaemon(true);
        watch.start();
    }
}
