//! Random numbers that are the same on every machine.

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The random numbers of one purpose: `ChaCha8` keyed by the network's seed, one stream each, so that what one
/// source draws does not depend on which other sources there are.
#[derive(Debug, Clone)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    /// Stream number `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Self(generator)
    }

    /// A whole number, all 64 bits random.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in (0, 1]: 53 random bits, exact in a double.
    fn uniform(&mut self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let numerator = ((self.bits() >> 11) + 1) as f64;
        numerator * (1.0 / 9_007_199_254_740_992.0)
    }

    /// An exponentially distributed span with mean `mean_ns`, rounded to the nearest nanosecond.
    pub(crate) fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        let uniform = self.uniform(); // never zero, which has no logarithm
                                      // libm's logarithm is plain arithmetic; the platform's may differ in the last bit.
        let span_ns = -mean_ns * libm::log(uniform);
        #[allow(clippy::cast_sign_loss)]
        let rounded = libm::round(span_ns) as u64;
        rounded
    }

    /// A span between `least_ns` and `most_ns` with a Pareto distribution of this exponent, cut off at `most_ns`,
    /// rounded to the nearest nanosecond.
    pub(crate) fn pareto_ns(&mut self, least_ns: f64, most_ns: f64, exponent: f64) -> u64 {
        // The share of the distribution above `most_ns`; libm's power is plain arithmetic too.
        let beyond = libm::pow(least_ns / most_ns, exponent);
        let above = beyond + self.uniform() * (1.0 - beyond);
        let span_ns = least_ns * libm::pow(above, -1.0 / exponent);
        #[allow(clippy::cast_sign_loss)]
        let rounded = libm::round(span_ns) as u64;
        rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_never_change() {
        let mut stream = Stream::new(1, 0);
        let drawn: Vec<u64> = (0..3).map(|_| stream.exponential_ns(1e6)).collect();
        assert_eq!(drawn, FIRST_GAPS_NS);
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream| Stream::new(seed, stream).bits();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
    }

    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn the_mean_is_the_mean() {
        let mut stream = Stream::new(7, 3);
        let sum_ns: u64 = (0..100_000).map(|_| stream.exponential_ns(5000.0)).sum();
        let mean_ns = sum_ns as f64 / 1e5;
        assert!((mean_ns - 5000.0).abs() < 80.0, "{mean_ns}");
    }

    /// Recorded once; another value means that every result of every seed changes.
    const FIRST_GAPS_NS: [u64; 3] = [910_096, 2_520_944, 516_575];
}
