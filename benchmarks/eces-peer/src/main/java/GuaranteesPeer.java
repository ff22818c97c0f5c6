import de.tum.ei.lkn.eces.core.Controller;
import de.tum.ei.lkn.eces.core.Entity;
import de.tum.ei.lkn.eces.core.MapperSpace;
import de.tum.ei.lkn.eces.dnm.DNMSystem;
import de.tum.ei.lkn.eces.dnm.NCRequestData;
import de.tum.ei.lkn.eces.dnm.ResidualMode;
import de.tum.ei.lkn.eces.dnm.config.ACModel;
import de.tum.ei.lkn.eces.dnm.config.BurstIncreaseModel;
import de.tum.ei.lkn.eces.dnm.config.DetServConfig;
import de.tum.ei.lkn.eces.dnm.config.costmodels.values.Constant;
import de.tum.ei.lkn.eces.dnm.mappers.DetServConfigMapper;
import de.tum.ei.lkn.eces.dnm.mappers.NCRequestDataMapper;
import de.tum.ei.lkn.eces.dnm.proxies.DetServProxy;
import de.tum.ei.lkn.eces.dnm.resourcemanagement.resourceallocation.MHM.MHMRateRatiosAllocation;
import de.tum.ei.lkn.eces.dnm.resourcemanagement.resourceallocation.SelectResourceAllocation;
import de.tum.ei.lkn.eces.dnm.resourcemanagement.resourceallocation.TBM.TBMStaticDelaysAllocation;
import de.tum.ei.lkn.eces.graph.GraphSystem;
import de.tum.ei.lkn.eces.network.Network;
import de.tum.ei.lkn.eces.network.NetworkNode;
import de.tum.ei.lkn.eces.network.NetworkingSystem;
import de.tum.ei.lkn.eces.routing.RoutingSystem;
import de.tum.ei.lkn.eces.routing.SelectedRoutingAlgorithm;
import de.tum.ei.lkn.eces.routing.algorithms.mcsp.astarprune.AStarPruneAlgorithm;
import de.tum.ei.lkn.eces.routing.mappers.PathMapper;
import de.tum.ei.lkn.eces.routing.mappers.RequestMapper;
import de.tum.ei.lkn.eces.routing.mappers.SelectedRoutingAlgorithmMapper;
import de.tum.ei.lkn.eces.routing.requests.UnicastRequest;
import de.uni_kl.cs.discodnc.curves.CurvePwAffine;
import de.uni_kl.cs.discodnc.numbers.Num;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/**
 * Guarantees of the authors' admission for flows that are requested in turn on a one-way ring of equal queues. Arguments:
 * model (MHM, or TBM as in Chameleon), nodes, rate (bytes/s), latency of a link (s), buffer of a queue (bytes), its delay (s;
 * TBM only), largest frame (bytes).
 * Standard input: for each flow a line "RATE BURST SOURCE LINKS DEADLINE". Prints "admitted SECONDS DELAY_S" or
 * "refused SECONDS" for each.
 */
public final class GuaranteesPeer {
    public static void main(String[] arguments) {
        boolean multiHop = arguments[0].equals("MHM");
        int count = Integer.parseInt(arguments[1]);
        double rate = Double.parseDouble(arguments[2]);
        double latency = Double.parseDouble(arguments[3]);
        double buffer = Double.parseDouble(arguments[4]);
        double delay = Double.parseDouble(arguments[5]);
        Controller controller = new Controller();
        GraphSystem graphs = new GraphSystem(controller);
        NetworkingSystem networking = new NetworkingSystem(controller, graphs);
        RequestMapper requests = new RequestMapper(controller);
        NCRequestDataMapper data = new NCRequestDataMapper(controller);
        SelectedRoutingAlgorithmMapper algorithms = new SelectedRoutingAlgorithmMapper(controller);
        PathMapper paths = new PathMapper(controller);
        new RoutingSystem(controller);
        new DNMSystem(controller);
        SelectResourceAllocation allocation = multiHop
            ? (control, scheduler) -> new MHMRateRatiosAllocation(control, new double[] {1.0})
            : (control, scheduler) -> new TBMStaticDelaysAllocation(control, new double[] {delay});
        DetServConfig config = new DetServConfig(multiHop ? ACModel.MHM : ACModel.TBM, ResidualMode.LEAST_LATENCY,
            BurstIncreaseModel.REAL, false, new Constant(), allocation, Double.parseDouble(arguments[6]), 0);
        Network network = networking.createNetwork();
        new DetServConfigMapper(controller).attachComponent(network.getQueueGraph(), config);
        config.initCostModel(controller);
        AStarPruneAlgorithm router = new AStarPruneAlgorithm(controller, true);
        router.setProxy(new DetServProxy(controller));
        NetworkNode[] nodes = new NetworkNode[count];
        for (int node = 0; node < count; node++) {
            nodes[node] = networking.createNode(network);
        }
        double[] queue = {buffer};
        for (int node = 0; node < count; node++) {
            networking.createLinkWithPriorityScheduling(nodes[node], nodes[(node + 1) % count], rate, latency, queue);
        }
        try (Scanner input = new Scanner(System.in)) {
            while (input.hasNextLine()) {
                String[] words = input.nextLine().trim().split(" ");
                int source = Integer.parseInt(words[2]);
                NetworkNode to = nodes[(source + Integer.parseInt(words[3])) % count];
                long begin = System.nanoTime();
                Entity entity = controller.createEntity();
                try (MapperSpace space = controller.startMapperSpace()) {
                    requests.attachComponent(entity, new UnicastRequest(nodes[source].getQueueNode(), to.getQueueNode()));
                    data.attachComponent(entity, new NCRequestData(
                        CurvePwAffine.getFactory().createTokenBucket(Double.parseDouble(words[0]), Double.parseDouble(words[1])),
                        Num.getFactory().create(Double.parseDouble(words[4]))));
                    algorithms.attachComponent(entity, new SelectedRoutingAlgorithm(router));
                }
                double seconds = (System.nanoTime() - begin) / 1e9;
                if (paths.isIn(entity)) {
                    System.out.printf("admitted %.9f %.9f%n", seconds, paths.get(entity).getConstraintsValues()[0]);
                } else {
                    System.out.printf("refused %.9f%n", seconds);
                }
            }
        }
        System.exit(0);
    }
}
