import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors and ConsumerProtocol, at the other end of a pipe.
 *
 * <p>Requests come on standard input until it ends: a byte that says what to do, and a body. Answers go to
 * standard output: a byte, 0 for a result or 1 for an error, and a body. Numbers are big-endian; bodies, bytes
 * and strings (UTF-8) have their length before them, -1 for null; lists have their count before them.
 */
public final class Driver {
    private final DataInputStream in;
    private final ByteArrayOutputStream result = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(result);

    private Driver(byte[] body) {
        in = new DataInputStream(new ByteArrayInputStream(body));
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(System.out));
        for (int what = requests.read(); what >= 0; what = requests.read()) {
            Driver driver = new Driver(requests.readNBytes(requests.readInt()));
            byte[] body;
            try {
                driver.answer((char) what);
                body = driver.result.toByteArray();
                answers.writeByte(0);
            } catch (RuntimeException refused) {
                body = refused.toString().getBytes(StandardCharsets.UTF_8);
                answers.writeByte(1);
            }
            answers.writeInt(body.length);
            answers.write(body);
            answers.flush();
        }
    }

    private void answer(char what) throws IOException {
        switch (what) {
            case 'L' -> lead();
            case 'S' -> {
                short version = in.readShort();
                Subscription subscription = new Subscription(
                    readStrings(), readBuffer(), readPartitions(), in.readInt(), Optional.ofNullable(readString()));
                writeBuffer(ConsumerProtocol.serializeSubscription(subscription, version));
            }
            case 's' -> {
                Subscription subscription = ConsumerProtocol.deserializeSubscription(readBuffer());
                writeStrings(subscription.topics());
                writeBuffer(subscription.userData());
                writePartitions(subscription.ownedPartitions());
                out.writeInt(subscription.generationId().orElse(-1));
                writeString(subscription.rackId().orElse(null));
            }
            case 'A' -> {
                short version = in.readShort();
                List<TopicPartition> partitions = readPartitions();
                writeBuffer(ConsumerProtocol.serializeAssignment(new Assignment(partitions, readBuffer()), version));
            }
            case 'a' -> {
                Assignment assignment = ConsumerProtocol.deserializeAssignment(readBuffer());
                writePartitions(assignment.partitions());
                writeBuffer(assignment.userData());
            }
            default -> throw new IOException("no such request: " + what);
        }
    }

    /** What ConsumerCoordinator does when its member is elected leader. */
    private void lead() throws IOException {
        ConsumerPartitionAssignor assignor = switch (readString()) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IOException("no such assignor");
        };
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (int left = in.readInt(); left > 0; left--) {
            String member = readString();
            Optional<String> instance = Optional.ofNullable(readString());
            Subscription subscription = ConsumerProtocol.deserializeSubscription(readBuffer());
            subscription.setGroupInstanceId(instance);
            subscriptions.put(member, subscription);
        }
        Nodes nodes = new Nodes();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            String topic = readString();
            int count = in.readInt();
            boolean hasRacks = in.readByte() != 0;
            for (int partition = 0; partition < count; partition++) {
                Node[] replicas = nodes.in(hasRacks ? readStrings() : List.of());
                partitions.add(new PartitionInfo(topic, partition, replicas[0], replicas, replicas));
            }
        }
        Cluster cluster = new Cluster("cluster", nodes.all(), partitions, Set.of(), Set.of());
        Map<String, Assignment> assignments =
            assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        out.writeInt(assignments.size());
        for (Map.Entry<String, Assignment> assigned : assignments.entrySet()) {
            writeString(assigned.getKey());
            writeBuffer(ConsumerProtocol.serializeAssignment(assigned.getValue()));
        }
    }

    /** One node a rack, and one that has none. */
    private static final class Nodes {
        private final Node elsewhere = new Node(0, "localhost", 9092);
        private final Map<String, Node> byRack = new HashMap<>();

        List<Node> all() {
            List<Node> all = new ArrayList<>(byRack.values());
            all.add(elsewhere);
            return all;
        }

        Node[] in(List<String> racks) {
            if (racks.isEmpty())
                return new Node[] {elsewhere};
            return racks.stream().map(rack -> byRack.computeIfAbsent(rack, this::inNewRack)).toArray(Node[]::new);
        }

        private Node inNewRack(String rack) {
            return new Node(byRack.size() + 1, "localhost", 9092, rack);
        }
    }

    private byte[] readBytes() throws IOException {
        int length = in.readInt();
        return length < 0 ? null : in.readNBytes(length);
    }

    private ByteBuffer readBuffer() throws IOException {
        byte[] bytes = readBytes();
        return bytes == null ? null : ByteBuffer.wrap(bytes);
    }

    private String readString() throws IOException {
        byte[] bytes = readBytes();
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private List<String> readStrings() throws IOException {
        List<String> strings = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--)
            strings.add(readString());
        return strings;
    }

    private List<TopicPartition> readPartitions() throws IOException {
        List<TopicPartition> partitions = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--)
            partitions.add(new TopicPartition(readString(), in.readInt()));
        return partitions;
    }

    private void writeBuffer(ByteBuffer buffer) throws IOException {
        if (buffer == null) {
            out.writeInt(-1);
        } else {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            out.writeInt(bytes.length);
            out.write(bytes);
        }
    }

    private void writeString(String string) throws IOException {
        writeBuffer(string == null ? null : ByteBuffer.wrap(string.getBytes(StandardCharsets.UTF_8)));
    }

    private void writeStrings(List<String> strings) throws IOException {
        out.writeInt(strings.size());
        for (String string : strings)
            writeString(string);
    }

    private void writePartitions(List<TopicPartition> partitions) throws IOException {
        out.writeInt(partitions.size());
        for (TopicPartition partition : partitions) {
            writeString(partition.topic());
            out.writeInt(partition.partition());
        }
    }
}
