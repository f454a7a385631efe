package minicluster.lines;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;

/**
 * Kafka's own classes behind standard input: each line is a command and has one line of output, both
 * JSON. {@code {"start": header}} begins anew. What else is printed goes to standard error.
 */
public interface LineProgram {
    ObjectMapper JSON = new ObjectMapper();

    JsonNode perform(JsonNode command) throws Exception;

    /** What it leaves behind: threads, files. */
    default void close() throws Exception { }

    interface Start {
        LineProgram begin(JsonNode header) throws Exception;
    }

    static void run(Start start) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        LineProgram program = null;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode command = JSON.readTree(line);
            JsonNode done = JSON.createObjectNode();
            if (command.has("start")) {
                if (program != null) program.close();
                program = start.begin(command.get("start"));
            } else done = program.perform(command);
            out.println(JSON.writeValueAsString(done));
            out.flush();
        }
        System.exit(0);  // whatever threads of Kafka's there are
    }
}
