import de.uni_kl.cs.discodnc.curves.ArrivalCurve;
import de.uni_kl.cs.discodnc.curves.CurvePwAffine;
import de.uni_kl.cs.discodnc.curves.ServiceCurve;
import de.uni_kl.cs.discodnc.nc.AbstractAnalysis;
import de.uni_kl.cs.discodnc.nc.Analysis;
import de.uni_kl.cs.discodnc.nc.AnalysisConfig;
import de.uni_kl.cs.discodnc.nc.analyses.PmooAnalysis;
import de.uni_kl.cs.discodnc.nc.analyses.SeparateFlowAnalysis;
import de.uni_kl.cs.discodnc.nc.analyses.TotalFlowAnalysis;
import de.uni_kl.cs.discodnc.network.Flow;
import de.uni_kl.cs.discodnc.network.Network;
import de.uni_kl.cs.discodnc.network.Server;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

/**
 * Delay bounds of DNC (DiscoDNC, the version on which the authors' library depends) for the first flow of a network of
 * equal servers. Standard input: a line "server RATE LATENCY" (bytes/s, s), then for each flow "flow RATE BURST SERVER ...".
 * Prints for each analysis one line: "result METHOD SECONDS DELAY_S", or "refused METHOD REASON".
 */
public final class BoundsPeer {
    private static final int REPETITIONS = 5;

    private interface Method {
        AbstractAnalysis of(Network network, AnalysisConfig config);
    }

    private static Flow build(List<String[]> lines, AnalysisConfig.Multiplexing order, Network network) throws Exception {
        CurvePwAffine curves = CurvePwAffine.getFactory();
        Map<String, Server> servers = new HashMap<>();
        ServiceCurve service = null;
        List<String[]> flows = new ArrayList<>();
        for (String[] words : lines) {
            if (words[0].equals("server")) {
                service = curves.createRateLatency(Double.parseDouble(words[1]), Double.parseDouble(words[2]));
                continue;
            }
            flows.add(words);
            Server before = null;
            for (int hop = 3; hop < words.length; hop++) {
                Server server = servers.get(words[hop]);
                if (server == null) {
                    server = network.addServer(words[hop], service.copy(), order);
                    servers.put(words[hop], server);
                }
                if (before != null) {
                    network.addLink(before, server);
                }
                before = server;
            }
        }
        Flow first = null;
        for (String[] words : flows) {
            List<Server> path = new ArrayList<>();
            for (int hop = 3; hop < words.length; hop++) {
                path.add(servers.get(words[hop]));
            }
            ArrivalCurve bucket = curves.createTokenBucket(Double.parseDouble(words[1]), Double.parseDouble(words[2]));
            Flow flow = network.addFlow(bucket, path);
            first = first == null ? flow : first;
        }
        return first;
    }

    private static void report(String name, List<String[]> lines, AnalysisConfig.MuxDiscipline discipline, Method method) {
        try {
            double seconds = Double.POSITIVE_INFINITY;
            double delay = Double.NaN;
            for (int turn = 0; turn < REPETITIONS; turn++) {
                Network network = new Network();
                boolean fifo = discipline == AnalysisConfig.MuxDiscipline.GLOBAL_FIFO;
                Flow flow = build(lines, fifo ? AnalysisConfig.Multiplexing.FIFO : AnalysisConfig.Multiplexing.ARBITRARY, network);
                AnalysisConfig config = new AnalysisConfig();
                config.setMultiplexingDiscipline(discipline);
                long begin = System.nanoTime();
                AbstractAnalysis analysis = method.of(network, config);
                ((Analysis) analysis).performAnalysis(flow);
                seconds = Math.min(seconds, (System.nanoTime() - begin) / 1e9);
                delay = analysis.getDelayBound().doubleValue();
            }
            System.out.printf("result %s %.9f %.9f%n", name, seconds, delay);
        } catch (Throwable error) { // whatever a method throws is its answer
            System.out.printf("refused %s %s%n", name, error.toString().replace('\n', ' '));
        }
    }

    public static void main(String[] arguments) {
        List<String[]> lines = new ArrayList<>();
        try (Scanner input = new Scanner(System.in)) {
            while (input.hasNextLine()) {
                lines.add(input.nextLine().trim().split(" "));
            }
        }
        Map<String, Method> methods = new LinkedHashMap<>();
        methods.put("TFA", TotalFlowAnalysis::new);
        methods.put("SFA", SeparateFlowAnalysis::new);
        methods.forEach((name, method) -> report(name + "-FIFO", lines, AnalysisConfig.MuxDiscipline.GLOBAL_FIFO, method));
        methods.put("PMOO", PmooAnalysis::new);
        methods.forEach((name, method) -> report(name, lines, AnalysisConfig.MuxDiscipline.GLOBAL_ARBITRARY, method));
        System.exit(0);
    }
}
