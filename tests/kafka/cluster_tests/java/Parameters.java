package former;

import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/**
 * What tests of Kafka 4.0 are repeated with: the kind of quorum, which was ZooKeeper's before, and
 * the protocol of groups. QuorumTestHarness had these methods.
 */
public interface Parameters {
    static Stream<Arguments> getTestQuorumAndGroupProtocolParametersAll() {
        return Stream.of(Arguments.of("kraft", "classic"), Arguments.of("kraft", "consumer"));
    }

    static Stream<Arguments> getTestQuorumAndGroupProtocolParametersClassicGroupProtocolOnly() {
        return Stream.of(Arguments.of("kraft", "classic"));
    }

    static Stream<Arguments> getTestQuorumAndGroupProtocolParametersConsumerGroupProtocolOnly() {
        return Stream.of(Arguments.of("kraft", "consumer"));
    }
}
