import de.tum.ei.lkn.eces.core.Entity;
import java.util.Scanner;

/**
 * Guarantees of the authors' admission for flows that are requested in turn on a one-way ring of equal queues. Arguments:
 * model (MHM, or TBM as in Chameleon), nodes, rate (bytes/s), latency of a link (s), buffer of a queue (bytes), its delay (s)
 * and largest frame (bytes), both for TBM only. Standard input: for each flow a line "RATE BURST SOURCE LINKS DEADLINE".
 * Prints for each "admitted SECONDS DELAY_S" or "refused SECONDS".
 */
public final class GuaranteesPeer {
    private static RingOfQueues ring(String model, double[] numbers) {
        int count = (int) numbers[0];
        return model.equals("MHM")
            ? RingOfQueues.multiHop(count, numbers[1], numbers[2], numbers[3])
            : RingOfQueues.threshold(count, numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]);
    }

    public static void main(String[] arguments) {
        double[] numbers = new double[arguments.length - 1];
        for (int place = 0; place < numbers.length; place++) {
            numbers[place] = Double.parseDouble(arguments[place + 1]);
        }
        RingOfQueues ring = ring(arguments[0], numbers);
        try (Scanner input = new Scanner(System.in)) {
            while (input.hasNextLine()) {
                String[] words = input.nextLine().trim().split(" ");
                long begin = System.nanoTime();
                Entity entity = ring.request(Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                    Double.parseDouble(words[0]), Double.parseDouble(words[1]), Double.parseDouble(words[4]));
                double seconds = (System.nanoTime() - begin) / 1e9;
                if (ring.isAdmitted(entity)) {
                    System.out.printf("admitted %.9f %.9f%n", seconds, ring.delay(entity));
                } else {
                    System.out.printf("refused %.9f%n", seconds);
                }
            }
        }
        System.exit(0);
    }
}
