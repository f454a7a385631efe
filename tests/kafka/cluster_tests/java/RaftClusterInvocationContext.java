package org.apache.kafka.common.test.junit;

import java.util.List;
import java.util.function.Supplier;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.opentest4j.TestAbortedException;

/**
 * Stands before Kafka's class of this name on the class path, so that each @ClusterTest gets a
 * cluster of another process (OtherProcess) in place of brokers in this one.
 *
 * A test for isolated and for combined nodes is played once: nodes that listen are isolated here.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        this.combined = combined;
    }

    /** Of Kafka's class; its extension calls it. */
    static void waitForCondition(Supplier<Boolean> holds, String what) throws InterruptedException {
        TestUtils.waitForCondition(holds::get, what);
    }

    static void leaveOut(String why) {
        throw new TestAbortedException(why);
    }

    @Override
    public String getDisplayName(int index) {
        return name + " [" + index + "] " + config.displayTags();
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        OtherProcess cluster = new OtherProcess(config);
        return List.of(
            (BeforeEachCallback) context -> {
                leaveOutWhatIsNotServed();
                if (config.isAutoStart()) cluster.start();
            },
            (AfterTestExecutionCallback) context -> cluster.stop(),
            new ClusterInstanceParameterResolver(cluster));
    }

    private void leaveOutWhatIsNotServed() {
        if (combined && config.clusterTypes().contains(Type.KRAFT))
            leaveOut("combined nodes: isolated ones play it");
        for (SecurityProtocol protocol :
                List.of(config.brokerSecurityProtocol(), config.controllerSecurityProtocol()))
            if (protocol != SecurityProtocol.PLAINTEXT
                    && protocol != SecurityProtocol.SASL_PLAINTEXT)
                leaveOut("nodes listen on " + protocol);
    }
}
