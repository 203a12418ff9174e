import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.AbstractCollection;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolAssignmentJsonConverter;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.ConsumerProtocolSubscriptionJsonConverter;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupCurrentMemberAssignmentValue;

/**
 * Writes records of every kind and version with the classes that Kafka writes them with, and what they say as JSON.
 *
 * <p>Arguments: the file to write, how many records of each kind and version, and the seed.
 */
public final class GoldenRecords {
    private static final String GENERATED = "org.apache.kafka.coordinator.group.generated.";
    private static final Set<String> NULLABLE = Set.of(
        "Protocol", "Leader", "GroupInstanceId", "InstanceId", "RackId", "SubscribedTopicRegex", "ServerAssignor",
        "ClassicMemberMetadata", "AssignmentEpochs", "UserData", "UserEndpoint");
    private static final String[] KINDS = {
        "LegacyOffsetCommit", "OffsetCommit", "GroupMetadata", "ConsumerGroupMetadata",
        "ConsumerGroupPartitionMetadata", "ConsumerGroupMemberMetadata", "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember", "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupRegularExpression", "ShareGroupMemberMetadata", "ShareGroupMetadata",
        "ShareGroupTargetAssignmentMetadata", "ShareGroupTargetAssignmentMember", "ShareGroupCurrentMemberAssignment",
        "ShareGroupStatePartitionMetadata", "StreamsGroupMetadata", "StreamsGroupMemberMetadata",
        "StreamsGroupTargetAssignmentMetadata", "StreamsGroupTargetAssignmentMember",
        "StreamsGroupCurrentMemberAssignment", "StreamsGroupTopology"};
    private static final String[] ALPHABETS = {"abcdefghij-._0123456789", "äöüßéñçøåæþ", "日本語テスト漢字", "a\0\t\"\\é日"};
    private static final String ASTRAL = "\uD83D\uDE00";

    private final Random random;
    private int depth;
    private final Map<String, JsonNode> nested = new HashMap<>();

    private GoldenRecords(long seed) {
        random = new Random(seed);
    }

    public static void main(String[] arguments) throws Exception {
        GoldenRecords golden = new GoldenRecords(Long.parseLong(arguments[2]));
        int count = Integer.parseInt(arguments[1]);
        ObjectMapper mapper = new ObjectMapper();
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(arguments[0]))) {
            for (String kind : KINDS) {
                // Brokers before 3.3 wrote all versions of the value of an offset under both versions of its key.
                String valueKind = kind.equals("LegacyOffsetCommit") ? "OffsetCommit" : kind;
                ApiMessage value = (ApiMessage) newMessage(valueKind + "Value");
                for (short version = 0; version <= value.highestSupportedVersion(); version++)
                    for (int number = 0; number <= count; number++) {
                        JsonNode record = golden.record(kind, valueKind, version, number == count);
                        out.write(mapper.writeValueAsString(record));
                        out.newLine();
                    }
            }
        }
    }

    private static Message newMessage(String name) throws Exception {
        return (Message) Class.forName(GENERATED + name).getConstructor().newInstance();
    }

    private JsonNode record(String kind, String valueKind, short version, boolean isTombstone) throws Exception {
        nested.clear();
        ObjectNode record = JsonNodeFactory.instance.objectNode();
        ApiMessage key = (ApiMessage) newMessage(kind + "Key");
        fill(key, false);
        record.put("kind", kind).put("key_version", key.apiKey());
        record.put("key", Base64.getEncoder().encodeToString(MessageUtil.toCoordinatorTypePrefixedBytes(key)));
        record.set("key_fields", json(kind + "Key", key, (short) 0));
        if (isTombstone)
            return record;
        Message value = newMessage(valueKind + "Value");
        boolean isFlexible = version >= 4 || !Set.of("OffsetCommit", "GroupMetadata").contains(valueKind);
        fill(value, isFlexible);
        if (value instanceof GroupMetadataValue generation)
            withConsumerProtocol(generation);
        record.put("version", version);
        record.put("value", Base64.getEncoder().encodeToString(MessageUtil.toVersionPrefixedBytes(version, value)));
        record.set("value_fields", json(valueKind + "Value", value, version));
        ObjectNode inside = record.putObject("nested");
        nested.forEach(inside::set);
        return record;
    }

    private static JsonNode json(String name, Message message, short version) throws Exception {
        Class<?> converter = Class.forName(GENERATED + name + "JsonConverter");
        return (JsonNode) converter.getMethod("write", message.getClass(), short.class).invoke(null, message, version);
    }

    /** Sets each field of a message to something, and adds unknown tagged fields. */
    private <T extends Message> T fill(T message, boolean isFlexible) throws Exception {
        Method[] methods = message.getClass().getDeclaredMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods)
            if (isField(method)) {
                String name = method.getName().substring(3);
                boolean isNull = NULLABLE.contains(name) && random.nextInt(3) == 0;
                Type type = method.getGenericParameterTypes()[0];
                Object value = isNull ? null : something(name, type, isFlexible);
                if (message instanceof StreamsGroupCurrentMemberAssignmentValue && value instanceof Byte state)
                    value = (byte) (state + 1); // the states of its members are numbered from 1
                method.invoke(message, value);
            }
        for (int number = 0; isFlexible && number < random.nextInt(4) - 1; number++)
            message.unknownTaggedFields().add(new RawTaggedField(100 + 20_000 * number, bytes(random.nextInt(200))));
        return message;
    }

    private static boolean isField(Method method) {
        return method.getName().startsWith("set")
            && method.getReturnType() == method.getDeclaringClass()
            && !AbstractCollection.class.isAssignableFrom(method.getParameterTypes()[0]);
    }

    private Object something(String name, Type type, boolean isFlexible) throws Exception {
        if (type == String.class)
            return string();
        if (type == byte.class)
            return (byte) random.nextInt(3);
        if (type == short.class || type == Short.class)
            return (short) random.nextInt();
        if (name.equals("Port"))
            return random.nextInt(1 << 16);
        if (type == int.class)
            return random.nextBoolean() ? random.nextInt(100) : random.nextInt();
        if (type == long.class)
            return name.toLowerCase().contains("timestamp") ? random.nextLong(1L << 43) : random.nextLong();
        if (type == boolean.class)
            return random.nextBoolean();
        if (type == byte[].class)
            return bytes(random.nextInt(100));
        if (type == ByteBuffer.class)
            return ByteBuffer.wrap(bytes(random.nextInt(100)));
        if (type == Uuid.class)
            return new Uuid(random.nextLong(), random.nextLong());
        if (type == Integer.class)
            return random.nextInt();
        if (type instanceof ParameterizedType list) {
            List<Object> elements = new ArrayList<>();
            depth++;
            for (int left = size(); left > 0; left--)
                elements.add(something("", list.getActualTypeArguments()[0], isFlexible));
            depth--;
            return elements;
        }
        return fill((Message) ((Class<?>) type).getConstructor().newInstance(), isFlexible);
    }

    private int size() {
        return depth < 2 && random.nextInt(20) == 0 ? 130 + random.nextInt(40) : random.nextInt(5);
    }

    private String string() {
        int kind = random.nextInt(30);
        int length = kind == 0 ? 1000 + random.nextInt(8000) : kind < 4 ? 120 + random.nextInt(20) : random.nextInt(20);
        String alphabet = ALPHABETS[random.nextInt(ALPHABETS.length)];
        StringBuilder made = new StringBuilder();
        for (int left = length; left > 0; left--)
            made.append(alphabet.charAt(random.nextInt(alphabet.length())));
        return random.nextInt(10) == 0 ? made + ASTRAL : made.toString();
    }

    private byte[] bytes(int length) {
        byte[] made = new byte[length];
        random.nextBytes(made);
        return made;
    }

    // --- ConsumerProtocol inside group metadata

    private void withConsumerProtocol(GroupMetadataValue generation) throws Exception {
        if (random.nextInt(5) == 0)
            return; // another protocol type, with bytes of its own
        generation.setProtocolType("consumer");
        String[] protocols = {"sticky", "cooperative-sticky", "range"};
        generation.setProtocol(protocols[random.nextInt(3)]);
        for (GroupMetadataValue.MemberMetadata member : generation.members()) {
            member.setSubscription(subscription(generation.protocol()));
            member.setAssignment(random.nextInt(5) == 0 ? new byte[0] : assignment());
        }
    }

    private byte[] subscription(String protocol) throws Exception {
        short version = (short) random.nextInt(4);
        ConsumerProtocolSubscription said = fill(new ConsumerProtocolSubscription(), false);
        ObjectNode sticky = JsonNodeFactory.instance.objectNode();
        said.setUserData(random.nextInt(4) == 0 ? null : userData(protocol, sticky));
        for (int left = size(); left > 0; left--)
            said.ownedPartitions().mustAdd(
                fill(new ConsumerProtocolSubscription.TopicPartition(), false).setTopic("owned-" + left));
        ObjectNode json = (ObjectNode) ConsumerProtocolSubscriptionJsonConverter.write(said, version);
        if (said.userData() != null)
            json.setAll(sticky);
        return remember("subscription:", version, said, json);
    }

    @SuppressWarnings("removal") // no other constructor says the generation
    private ByteBuffer userData(String protocol, ObjectNode sticky) {
        List<TopicPartition> owned = new ArrayList<>();
        for (int left = size(); left > 0; left--)
            owned.add(new TopicPartition("topic-" + random.nextInt(5), left));
        ConsumerGroupMetadata metadata = new ConsumerGroupMetadata("g", random.nextInt(1000), "m", Optional.empty());
        if (protocol.equals("range"))
            return ByteBuffer.wrap(bytes(random.nextInt(50)));
        if (protocol.equals("cooperative-sticky")) {
            CooperativeStickyAssignor assignor = new CooperativeStickyAssignor();
            assignor.onAssignment(new Assignment(owned), metadata);
            sticky.put("stickyGeneration", metadata.generationId());
            return assignor.subscriptionUserData(Set.of());
        }
        StickyAssignor assignor = new StickyAssignor();
        assignor.onAssignment(new Assignment(owned), metadata);
        for (TopicPartition partition : owned)
            sticky.withArray("stickyOwned").addArray().add(partition.topic()).add(partition.partition());
        if (owned.isEmpty())
            sticky.putArray("stickyOwned");
        ByteBuffer versionOne = assignor.subscriptionUserData(Set.of());
        if (random.nextInt(3) == 0) // version 0 ends before the generation
            return versionOne.limit(versionOne.limit() - Integer.BYTES);
        sticky.put("stickyGeneration", metadata.generationId());
        return versionOne;
    }

    private byte[] assignment() throws Exception {
        short version = (short) random.nextInt(4);
        ConsumerProtocolAssignment given = fill(new ConsumerProtocolAssignment(), false);
        for (int left = size(); left > 0; left--)
            given.assignedPartitions().mustAdd(
                fill(new ConsumerProtocolAssignment.TopicPartition(), false).setTopic("topic-" + left));
        ObjectNode json = (ObjectNode) ConsumerProtocolAssignmentJsonConverter.write(given, version);
        return remember("assignment:", version, given, json);
    }

    private byte[] remember(String what, short version, Message message, ObjectNode json) {
        byte[] bytes = MessageUtil.toVersionPrefixedBytes(version, message);
        nested.put(what + Base64.getEncoder().encodeToString(bytes), json.put("version", version));
        return bytes;
    }
}
