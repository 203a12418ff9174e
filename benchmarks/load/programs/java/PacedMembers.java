import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of a group with Kafka's Java client, a thread each, that do as members.py says. */
public final class PacedMembers {
    private static final Duration WAIT = Duration.ofMillis(50);
    private static final long STOP_MILLIS = 10_000;
    private static final long REPORT_MICROS = 250_000;

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Map<String, String> given = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        Map<Integer, Member> members = new TreeMap<>();
        for (int number = integer(given, "first"); number <= integer(given, "last"); number++)
            members.put(number, new Member(number, given));
        say("ready");
        follow(new BufferedReader(new InputStreamReader(System.in)), members, Path.of(given.get("folder")));
        // The members do not leave the group, which is not used again.
        System.exit(0);
    }

    private static void follow(BufferedReader orders, Map<Integer, Member> members, Path folder)
            throws IOException, InterruptedException {
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            switch (line.strip()) {
                case "join" -> members.values().forEach(Member::start);
                case "rebalance" -> members.get(0).wantsRebalance = true;
                case "stop" -> {
                    for (Member member : members.values())
                        member.stopping = true;
                    for (Member member : members.values())
                        member.stopInto(folder);
                    say("done");
                    return;
                }
                default -> { }
            }
        }
    }

    private static int integer(Map<String, String> given, String name) {
        return Integer.parseInt(given.get(name));
    }

    private static long nanos(Map<String, String> given, String name) {
        return (long) (Double.parseDouble(given.get(name)) * 1e9);
    }

    private static long now() {
        Instant instant = Instant.now();
        return instant.getEpochSecond() * 1_000_000 + instant.getNano() / 1_000;
    }

    private static synchronized void say(String line) {
        System.out.println(line.replace('\n', ' '));
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final int number;
        private final String topic;
        private final long service;
        private final long slack;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private volatile boolean stopping;
        private volatile boolean wantsRebalance;
        private long freeAt = System.nanoTime();
        private long reported = now();
        // Three numbers a message: when it was done, its partition, its offset.
        private long[] received = new long[4096];
        private int length;

        Member(int number, Map<String, String> given) {
            this.number = number;
            topic = given.get("topic");
            service = nanos(given, "service");
            slack = nanos(given, "slack");
            Properties config = new Properties();
            given.forEach((name, value) -> {
                if (name.endsWith(".ms") || name.equals("max.poll.records"))
                    config.put(name, value);
            });
            config.put("bootstrap.servers", given.get("servers"));
            config.put("group.id", given.get("group"));
            config.put("auto.offset.reset", "earliest");
            config.put("partition.assignment.strategy", given.get("assignor"));
            consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                consumer.subscribe(List.of(topic), this);
                while (!stopping) {
                    if (wantsRebalance) {
                        wantsRebalance = false;
                        consumer.enforceRebalance("benchmark");
                    }
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(WAIT)) {
                        serve();
                        record(each);
                        if (stopping)
                            break;
                    }
                    report();
                }
            } catch (RuntimeException failure) {
                say("failed " + failure);
            }
        }

        /** The same as Pacer in pacer.py. */
        private void serve() {
            freeAt = Math.max(freeAt, System.nanoTime() - slack) + service;
            for (long left = freeAt - System.nanoTime(); left > 0; left = freeAt - System.nanoTime())
                LockSupport.parkNanos(left);
        }

        private void record(ConsumerRecord<byte[], byte[]> message) {
            if (length + 3 > received.length)
                received = Arrays.copyOf(received, 2 * length);
            received[length++] = now();
            received[length++] = message.partition();
            received[length++] = message.offset();
        }

        private void report() {
            if (now() > reported + REPORT_MICROS) {
                reported = now();
                say("consumed " + number + " " + length / 3);
            }
        }

        void stopInto(Path folder) throws IOException, InterruptedException {
            join(STOP_MILLIS);
            ByteBuffer bytes = ByteBuffer.allocate(8 * length).order(ByteOrder.LITTLE_ENDIAN);
            bytes.asLongBuffer().put(received, 0, length);
            Files.write(folder.resolve(number + ".received"), bytes.array());
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tell("gained", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tell("gave", partitions);
        }

        private void tell(String word, Collection<TopicPartition> partitions) {
            if (partitions.isEmpty())
                return;
            String list = partitions.stream().map(each -> "" + each.partition()).collect(Collectors.joining(","));
            say(word + " " + number + " " + now() + " " + list);
        }
    }
}
