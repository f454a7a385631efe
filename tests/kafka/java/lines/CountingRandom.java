package minicluster.lines;

import java.nio.ByteBuffer;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.Arrays;

/** Ids that both sides know before: the n-th that is drawn has n in its last bytes. */
public class CountingRandom extends SecureRandomSpi {
    private static long drawn = 0;

    /** Kafka draws its ids from here from now on; before any class of Kafka's is used. */
    public static void install() {
        Security.insertProviderAt(new Counting(), 1);
    }

    public static void countFrom(long number) {
        drawn = number;
    }

    protected void engineSetSeed(byte[] seed) { }

    protected void engineNextBytes(byte[] bytes) {
        Arrays.fill(bytes, (byte) 0);
        byte[] number = ByteBuffer.allocate(8).putLong(++drawn).array();
        int length = Math.min(7, bytes.length);
        System.arraycopy(number, 8 - length, bytes, bytes.length - length, length);
    }

    protected byte[] engineGenerateSeed(int count) {
        return new byte[count];
    }

    private static class Counting extends Provider {
        private Counting() {
            super("Counting", "1", "ids that both sides know before");
            put("SecureRandom.Counting", CountingRandom.class.getName());
        }
    }
}
