import de.tum.ei.lkn.eces.core.Entity;

/**
 * Decisions a second of the multi-hop model on a one-way ring, each queue with the rate and burst of Loko's full-rate
 * allocation. Arguments: nodes, links of each path, seconds. Prints one line: cycles/s refusals/s.
 */
public final class AdmissionPeer {
    private static final double RATE_BYTES_PER_S = 11.849e6 / 8;
    private static final double BURST_BYTES = 2067.4;
    private static final double FRAME_BYTES = 306;
    private static final double LARGEST_FRAME_BYTES = 1530;
    private static final double FLOW_BYTES_PER_S = 100e3 / 8;
    private static final double DEADLINE_S = 1;

    private final RingOfQueues ring;
    private final int links;

    private AdmissionPeer(int count, int links) {
        this.links = links;
        double buffer = BURST_BYTES + 2 * LARGEST_FRAME_BYTES; // what the allocation takes off again
        ring = RingOfQueues.multiHop(count, RATE_BYTES_PER_S, 0, buffer);
    }

    /** Requests and releases, or requests that do not fit, each second; every answer is checked. */
    private double rate(double burst, boolean fits, double seconds) {
        long begin = System.nanoTime();
        long done = 0;
        while (System.nanoTime() - begin < seconds * 1e9) {
            for (int turn = 0; turn < 20; turn++, done++) {
                Entity entity = ring.request((int) (done % ring.size()), links, FLOW_BYTES_PER_S, burst, DEADLINE_S);
                if (ring.isAdmitted(entity) != fits) {
                    throw new IllegalStateException("a request with a burst of " + burst + " bytes: fits is not " + fits);
                }
                ring.release(entity);
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
