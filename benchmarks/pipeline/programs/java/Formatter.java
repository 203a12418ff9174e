import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.tools.consumer.OffsetsMessageFormatter;

/**
 * Kafka's own formatter of committed offsets over records in memory: prints the nanoseconds of each round.
 *
 * <p>Arguments: the file of the records (of each the key's length, the key, the value's length, -1 for none, and the
 * value), and how many rounds.
 */
public final class Formatter {
    public static void main(String[] arguments) throws IOException {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(arguments[0]))))) {
            int count = in.readInt();
            for (int number = 0; number < count; number++)
                records.add(new ConsumerRecord<>("__consumer_offsets", 0, number, bytes(in), bytes(in)));
        }
        try (OffsetsMessageFormatter formatter = new OffsetsMessageFormatter();
                PrintStream out = new PrintStream(OutputStream.nullOutputStream())) {
            for (int round = Integer.parseInt(arguments[1]); round > 0; round--) {
                long began = System.nanoTime();
                for (ConsumerRecord<byte[], byte[]> record : records)
                    formatter.writeTo(record, out);
                System.out.println(System.nanoTime() - began);
            }
        }
    }

    private static byte[] bytes(DataInputStream in) throws IOException {
        int length = in.readInt();
        return length < 0 ? null : in.readNBytes(length);
    }
}
