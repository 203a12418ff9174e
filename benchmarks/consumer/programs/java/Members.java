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
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of a group, a thread each, with Kafka's Java client; members.py says what they do. */
public final class Members {
    private static final Duration WAIT = Duration.ofMillis(500);
    private static final long STOP_MILLIS = 10_000;

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
        // Their sessions are left to end, as the group is of no use any more.
        System.exit(0);
    }

    private static void follow(BufferedReader orders, Map<Integer, Member> members, Path folder)
            throws IOException, InterruptedException {
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.strip().split(" ");
            if (words[0].equals("join"))
                for (int number = Integer.parseInt(words[1]); number <= Integer.parseInt(words[2]); number++)
                    members.get(number).start();
            if (words[0].equals("stop")) {
                for (Member member : members.values())
                    member.stopInto(folder);
                say("done");
                return;
            }
        }
    }

    private static int integer(Map<String, String> given, String name) {
        return Integer.parseInt(given.get(name));
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
        private final KafkaConsumer<byte[], byte[]> consumer;
        private volatile boolean stopping;
        // Four numbers a message: when it came, its partition, its offset, its timestamp in milliseconds.
        private long[] received = new long[4096];
        private int length;

        Member(int number, Map<String, String> given) {
            this.number = number;
            this.topic = given.get("topic");
            Properties config = new Properties();
            given.forEach((name, value) -> {
                if (name.endsWith(".ms"))
                    config.put(name, value);
            });
            config.put("bootstrap.servers", given.get("servers"));
            config.put("group.id", given.get("group"));
            config.put("auto.offset.reset", "latest");
            config.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
            consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                say("subscribed " + number + " " + now());
                consumer.subscribe(List.of(topic), this);
                while (!stopping)
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(WAIT))
                        receive(each);
            } catch (RuntimeException failure) {
                say("failed " + failure);
            }
        }

        private void receive(ConsumerRecord<byte[], byte[]> message) {
            if (length == received.length)
                received = Arrays.copyOf(received, 2 * length);
            received[length++] = now();
            received[length++] = message.partition();
            received[length++] = message.offset();
            received[length++] = message.timestamp();
        }

        void stopInto(Path folder) throws IOException, InterruptedException {
            stopping = true;
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
