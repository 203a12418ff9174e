import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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

/** Kafka's Java client as the leader: reads the inputs, repeats the step, and writes the last answer. */
public final class Leader {
    private static final double FASTER = 0.95;

    private final DataInputStream in;
    private String assignor;
    private Cluster cluster;
    private final Map<String, byte[]> joined = new LinkedHashMap<>();

    private Leader(DataInputStream in) {
        this.in = in;
    }

    public static void main(String[] arguments) throws IOException {
        Leader leader = new Leader(
            new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(arguments[0])))));
        leader.read();
        System.out.println("ready");
        Map<String, ByteBuffer> answer;
        try {
            answer = leader.repeat(
                Long.parseLong(arguments[2]), Long.parseLong(arguments[3]), Integer.parseInt(arguments[4]));
        } catch (RuntimeException failure) {
            System.out.println("failed " + failure);
            return;
        }
        System.out.println("peak " + peak());
        write(Path.of(arguments[1]), answer);
        System.out.println("done");
    }

    /** The same rule as in all programs: until the step does not become faster any more. */
    private Map<String, ByteBuffer> repeat(long patience, long longest, int least) {
        long began = System.nanoTime();
        long improved = began;
        double mark = Double.POSITIVE_INFINITY;
        for (int run = 1; ; run++) {
            long start = System.nanoTime();
            Map<String, ByteBuffer> answer = step();
            long end = System.nanoTime();
            System.out.println("run " + (end - start));
            if (end - start < FASTER * mark) {
                mark = end - start;
                improved = end;
            }
            if (run >= least && (end - began > longest || end - improved > patience))
                return answer;
        }
    }

    /** What ConsumerCoordinator does when its member is elected leader, without logging and bookkeeping. */
    private Map<String, ByteBuffer> step() {
        Map<String, Subscription> subscriptions = new HashMap<>();
        joined.forEach((member, bytes) ->
            subscriptions.put(member, ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(bytes))));
        Map<String, Assignment> assignments =
            newAssignor().assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        Map<String, ByteBuffer> answer = new HashMap<>();
        assignments.forEach((member, assignment) ->
            answer.put(member, ConsumerProtocol.serializeAssignment(assignment)));
        return answer;
    }

    private ConsumerPartitionAssignor newAssignor() {
        return switch (assignor) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("no such assignor: " + assignor);
        };
    }

    private void read() throws IOException {
        assignor = readString();
        List<Node> nodes = new ArrayList<>();
        int nodeCount = in.readInt();
        for (int id = 0; id < nodeCount; id++)
            nodes.add(new Node(id, "localhost", 9092 + id, readString()));
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--)
            readTopic(nodes, partitions);
        cluster = new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
        for (int left = in.readInt(); left > 0; left--)
            joined.put(readString(), readBytes());
    }

    private void readTopic(List<Node> nodes, List<PartitionInfo> partitions) throws IOException {
        String topic = readString();
        int count = in.readInt();
        int replicaCount = in.readInt();
        for (int partition = 0; partition < count; partition++) {
            Node[] replicas = new Node[replicaCount];
            for (int replica = 0; replica < replicaCount; replica++)
                replicas[replica] = nodes.get(in.readInt());
            partitions.add(new PartitionInfo(topic, partition, replicas[0], replicas, replicas));
        }
    }

    private byte[] readBytes() throws IOException {
        int length = in.readInt();
        return length < 0 ? null : in.readNBytes(length);
    }

    private String readString() throws IOException {
        byte[] bytes = readBytes();
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private static void write(Path path, Map<String, ByteBuffer> answer) throws IOException {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            out.writeInt(answer.size());
            for (Map.Entry<String, ByteBuffer> assigned : answer.entrySet()) {
                writeBytes(out, assigned.getKey().getBytes(StandardCharsets.UTF_8));
                byte[] bytes = new byte[assigned.getValue().remaining()];
                assigned.getValue().get(bytes);
                writeBytes(out, bytes);
            }
        }
    }

    private static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    /** The most memory that the process has held, in bytes; 0 where Linux does not tell. */
    private static long peak() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status")))
                if (line.startsWith("VmHWM:"))
                    return 1024 * Long.parseLong(line.replaceAll("[^0-9]", ""));
        } catch (IOException notLinux) {
            return 0;
        }
        return 0;
    }
}
