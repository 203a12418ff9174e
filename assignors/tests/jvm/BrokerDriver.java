import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.ModernGroup;
import org.apache.kafka.coordinator.group.modern.SubscriptionCount;

/**
 * The assignors of Kafka's coordinator, at the other end of a pipe.
 *
 * <p>Requests come on standard input until it ends, and answers go to standard output. Numbers are big-endian,
 * strings are those of DataInput, lists have their count before them.
 */
public final class BrokerDriver {
    private final DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    private final DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
    private final Map<String, Uuid> ids = new HashMap<>();
    private final Map<Uuid, String> names = new HashMap<>();
    private final Map<Uuid, Integer> partitions = new HashMap<>();
    private boolean isInOrder;

    public static void main(String[] arguments) throws IOException {
        BrokerDriver driver = new BrokerDriver();
        for (int more = driver.in.read(); more >= 0; more = driver.in.read()) {
            driver.assign();
            driver.out.flush();
        }
    }

    private void assign() throws IOException {
        ConsumerGroupPartitionAssignor assignor = switch (in.readUTF()) {
            case "uniform" -> new UniformAssignor();
            case "range" -> new RangeAssignor();
            default -> throw new IOException("no such assignor");
        };
        isInOrder = in.readBoolean();
        readTopics();
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<String, SubscriptionCount> subscribed = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (int left = in.readInt(); left > 0; left--) {
            String member = in.readUTF();
            Optional<String> instance = Optional.of(in.readUTF()).filter(id -> !id.isEmpty());
            Set<Uuid> topics = new HashSet<>();
            for (int more = in.readInt(); more > 0; more--) {
                String topic = in.readUTF();
                subscribed.compute(topic, SubscriptionCount::incNameCount);
                if (ids.containsKey(topic))
                    topics.add(ids.get(topic));
            }
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            for (int more = in.readInt(); more > 0; more--) {
                Uuid topic = ids.get(in.readUTF());
                int partition = in.readInt();
                owned.computeIfAbsent(topic, unused -> isInOrder ? new TreeSet<>() : new HashSet<>()).add(partition);
                inverted.computeIfAbsent(topic, unused -> new HashMap<>()).put(partition, member);
            }
            members.put(member, new MemberSubscriptionAndAssignmentImpl(
                Optional.of("ignored"), instance, topics, new Assignment(owned)));
        }
        GroupSpecImpl group =
            new GroupSpecImpl(members, ModernGroup.subscriptionType(subscribed, members.size()), inverted);
        write(assignor.assign(group, new Topics()).members());
    }

    private void readTopics() throws IOException {
        ids.clear();
        names.clear();
        partitions.clear();
        for (int left = in.readInt(); left > 0; left--) {
            String name = in.readUTF();
            Uuid id = new Uuid(in.readLong(), in.readLong());
            ids.put(name, id);
            names.put(id, name);
            partitions.put(id, in.readInt());
        }
    }

    private void write(Map<String, MemberAssignment> assigned) throws IOException {
        out.writeInt(assigned.size());
        for (Map.Entry<String, MemberAssignment> member : assigned.entrySet()) {
            out.writeUTF(member.getKey());
            Map<Uuid, Set<Integer>> byTopic = member.getValue().partitions();
            out.writeInt(byTopic.size());
            for (Map.Entry<Uuid, Set<Integer>> topic : byTopic.entrySet()) {
                out.writeUTF(names.get(topic.getKey()));
                out.writeInt(topic.getValue().size());
                for (int partition : topic.getValue())
                    out.writeInt(partition);
            }
        }
    }

    private final class Topics implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topic) {
            return partitions.getOrDefault(topic, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of("elsewhere");
        }
    }
}
