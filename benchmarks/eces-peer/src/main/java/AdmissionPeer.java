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

/**
 * Decisions a second of the multi-hop model on a one-way ring, each queue with the rate and burst of Loko's full-rate
 * allocation. Arguments: nodes, links of each path, seconds. Prints one line: cycles/s refusals/s.
 */
public final class AdmissionPeer {
    private static final double RATE_BYTES_PER_S = 11.849e6 / 8;
    private static final double BURST_BYTES = 2067.4;
    private static final double FRAME_BYTES = 306;
    private static final double FLOW_BYTES_PER_S = 100e3 / 8;
    private static final double DEADLINE_S = 1;

    private final Controller controller = new Controller();
    private final RequestMapper requests;
    private final NCRequestDataMapper data;
    private final SelectedRoutingAlgorithmMapper algorithms;
    private final PathMapper paths;
    private final AStarPruneAlgorithm router;
    private final NetworkNode[] nodes;
    private final int links;

    private AdmissionPeer(int count, int links) {
        this.links = links;
        GraphSystem graphs = new GraphSystem(controller);
        NetworkingSystem networking = new NetworkingSystem(controller, graphs);
        requests = new RequestMapper(controller);
        data = new NCRequestDataMapper(controller);
        algorithms = new SelectedRoutingAlgorithmMapper(controller);
        paths = new PathMapper(controller);
        new RoutingSystem(controller);
        new DNMSystem(controller);
        DetServConfig config = new DetServConfig(ACModel.MHM, ResidualMode.LEAST_LATENCY, BurstIncreaseModel.REAL, false,
            new Constant(), (control, scheduler) -> new MHMRateRatiosAllocation(control, new double[] {1.0}));
        Network network = networking.createNetwork();
        new DetServConfigMapper(controller).attachComponent(network.getQueueGraph(), config);
        config.initCostModel(controller);
        router = new AStarPruneAlgorithm(controller, true);
        router.setProxy(new DetServProxy(controller));
        nodes = new NetworkNode[count];
        for (int node = 0; node < count; node++) {
            nodes[node] = networking.createNode(network);
        }
        double[] queue = {BURST_BYTES + 2 * config.getMaximumPacketSize()}; // what the allocation takes off again
        for (int node = 0; node < count; node++) {
            networking.createLinkWithPriorityScheduling(nodes[node], nodes[(node + 1) % count], RATE_BYTES_PER_S, 0, queue);
        }
    }

    private Entity request(int source, double burst) {
        Entity entity = controller.createEntity();
        try (MapperSpace space = controller.startMapperSpace()) {
            requests.attachComponent(entity, new UnicastRequest(
                nodes[source].getQueueNode(), nodes[(source + links) % nodes.length].getQueueNode()));
            data.attachComponent(entity, new NCRequestData(
                CurvePwAffine.getFactory().createTokenBucket(FLOW_BYTES_PER_S, burst),
                Num.getFactory().create(DEADLINE_S)));
            algorithms.attachComponent(entity, new SelectedRoutingAlgorithm(router));
        }
        return entity;
    }

    private void release(Entity entity) {
        try (MapperSpace space = controller.startMapperSpace()) {
            requests.detachComponent(entity);
        }
    }

    /** Requests and releases, or requests that do not fit, each second; every answer is checked. */
    private double rate(double burst, boolean fits, double seconds) {
        long begin = System.nanoTime();
        long done = 0;
        while (System.nanoTime() - begin < seconds * 1e9) {
            for (int turn = 0; turn < 20; turn++, done++) {
                Entity entity = request((int) (done % nodes.length), burst);
                if (paths.isIn(entity) != fits) {
                    throw new IllegalStateException("a request with a burst of " + burst + " bytes: fits is not " + fits);
                }
                release(entity);
            }
        }
        return done / ((System.nanoTime() - begin) / 1e9);
    }

    public static void main(String[] arguments) {
        AdmissionPeer peer = new AdmissionPeer(Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]));
        double seconds = Double.parseDouble(arguments[2]);
        peer.rate(FRAME_BYTES, true, seconds); // the virtual machine compiles what it runs often
        peer.rate(2 * BURST_BYTES, false, seconds);
        double cycles = peer.rate(FRAME_BYTES, true, seconds);
        System.out.printf("result %.1f %.1f%n", cycles, peer.rate(2 * BURST_BYTES, false, seconds));
        System.exit(0);
    }
}
