import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command line tools one after the other in one JVM: their starts take longer than they do.
 *
 * Each line of the input is a tool as JSON: its main class, arguments and standard input; a line of
 * JSON with its exit code and output answers it.
 */
public class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final class Ended extends Error {
        Ended() { super(null, null, false, false); }
    }

    /** How a tool ended: the first exit counts, for some catch the error by which it is left. */
    private record End(int exit_code, String output, String errors) { }

    private static ByteArrayOutputStream output;
    private static ByteArrayOutputStream errors;
    private static final List<Runnable> hooks = new ArrayList<>();
    private static End end;

    private static void end(int code) {
        if (end != null) return;
        hooks.forEach(Runnable::run); // they send what a producer still has
        hooks.clear();
        end = new End(code, output.toString(StandardCharsets.UTF_8), errors.toString(StandardCharsets.UTF_8));
    }

    private static void exit(int code, String message) {
        end(code);
        throw new Ended();
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
        Exit.setExitProcedure(Tools::exit);
        Exit.setHaltProcedure(Tools::exit);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        InputStream in = System.in;
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode tool = JSON.readTree(line);
            output = new ByteArrayOutputStream();
            errors = new ByteArrayOutputStream();
            end = null;
            System.setIn(new ByteArrayInputStream(tool.get("input").asText().getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            run(tool);
            out.println(JSON.writeValueAsString(end));
            out.flush();
        }
    }

    private static void run(JsonNode tool) throws Exception {
        String[] arguments = JSON.convertValue(tool.get("arguments"), String[].class);
        try {
            Class.forName(tool.get("main").asText()).getMethod("main", String[].class).invoke(null, (Object) arguments);
            end(0);
        } catch (InvocationTargetException e) {
            if (end == null) e.getCause().printStackTrace();
            end(1);
        }
    }
}
