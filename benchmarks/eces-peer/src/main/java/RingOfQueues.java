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
import java.util.function.Function;

/** The authors' admission on a one-way ring of equal queues, one for each link. */
final class RingOfQueues {
    private final Controller controller = new Controller();
    private final RequestMapper requests;
    private final NCRequestDataMapper data;
    private final SelectedRoutingAlgorithmMapper algorithms;
    private final PathMapper paths;
    private final AStarPruneAlgorithm router;
    private final NetworkNode[] nodes;

    /** Rates are in bytes/s, times in s, sizes in bytes. */
    private RingOfQueues(int count, double rate, double latency, double buffer, Function<Controller, DetServConfig> model) {
        GraphSystem graphs = new GraphSystem(controller);
        NetworkingSystem networking = new NetworkingSystem(controller, graphs);
        requests = new RequestMapper(controller);
        data = new NCRequestDataMapper(controller);
        algorithms = new SelectedRoutingAlgorithmMapper(controller);
        paths = new PathMapper(controller);
        new RoutingSystem(controller);
        new DNMSystem(controller);
        DetServConfig config = model.apply(controller);
        Network network = networking.createNetwork();
        new DetServConfigMapper(controller).attachComponent(network.getQueueGraph(), config);
        config.initCostModel(controller);
        router = new AStarPruneAlgorithm(controller, true);
        router.setProxy(new DetServProxy(controller));
        nodes = new NetworkNode[count];
        for (int node = 0; node < count; node++) {
            nodes[node] = networking.createNode(network);
        }
        double[] queue = {buffer};
        for (int node = 0; node < count; node++) {
            networking.createLinkWithPriorityScheduling(nodes[node], nodes[(node + 1) % count], rate, latency, queue);
        }
    }

    /** The multi-hop model: a queue's rate and burst follow from its size, less two of the library's largest frames. */
    static RingOfQueues multiHop(int count, double rate, double latency, double buffer) {
        return new RingOfQueues(count, rate, latency, buffer, controller -> new DetServConfig(ACModel.MHM,
            ResidualMode.LEAST_LATENCY, BurstIncreaseModel.REAL, false, new Constant(),
            (control, scheduler) -> new MHMRateRatiosAllocation(control, new double[] {1.0})));
    }

    /** The threshold model, as in Chameleon: each queue has a fixed delay. */
    static RingOfQueues threshold(int count, double rate, double latency, double buffer, double delay, double frame) {
        return new RingOfQueues(count, rate, latency, buffer, controller -> new DetServConfig(ACModel.TBM,
            ResidualMode.LEAST_LATENCY, BurstIncreaseModel.REAL, false, new Constant(),
            (control, scheduler) -> new TBMStaticDelaysAllocation(control, new double[] {delay}), frame, 0));
    }

    int size() {
        return nodes.length;
    }

    Entity request(int source, int links, double rate, double burst, double deadline) {
        Entity entity = controller.createEntity();
        try (MapperSpace space = controller.startMapperSpace()) {
            requests.attachComponent(entity, new UnicastRequest(
                nodes[source].getQueueNode(), nodes[(source + links) % nodes.length].getQueueNode()));
            data.attachComponent(entity, new NCRequestData(
                CurvePwAffine.getFactory().createTokenBucket(rate, burst), Num.getFactory().create(deadline)));
            algorithms.attachComponent(entity, new SelectedRoutingAlgorithm(router));
        }
        return entity;
    }

    boolean isAdmitted(Entity entity) {
        return paths.isIn(entity);
    }

    /** The guaranteed delay of an admitted flow. */
    double delay(Entity entity) {
        return paths.get(entity).getConstraintsValues()[0];
    }

    void release(Entity entity) {
        try (MapperSpace space = controller.startMapperSpace()) {
            requests.detachComponent(entity);
        }
    }
}
