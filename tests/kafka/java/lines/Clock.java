package minicluster.lines;

import org.apache.kafka.common.utils.Time;

import java.util.function.Supplier;

/** Time that passes where the program says so, and nowhere else. */
public class Clock implements Time {
    public long nowMs;

    public long milliseconds() {
        return nowMs;
    }

    public long nanoseconds() {
        return nowMs * 1_000_000;
    }

    public void sleep(long ms) {
        throw new UnsupportedOperationException();
    }

    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException();
    }
}
