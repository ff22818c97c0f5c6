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

    /// Returns a whole number, all 64 bits random.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number in (0, 1]: 53 random bits, exact in a double.
    fn uniform(&mut self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let numerator = ((self.bits() >> 11) + 1) as f64;
        numerator * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Returns an exponentially distributed span with mean `mean_ns`, rounded to the nearest nanosecond.
    pub(crate) fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        let uniform = self.uniform(); // never zero, which has no logarithm
                                      // libm's logarithm is plain arithmetic; the platform's may differ in the last bit.
        rounded(-mean_ns * libm::log(uniform))
    }

    /// Returns a span between `least_ns` and `most_ns` with a Pareto distribution of this exponent, cut off at
    /// `most_ns`, rounded to the nearest nanosecond.
    pub(crate) fn pareto_ns(&mut self, least_ns: f64, most_ns: f64, exponent: f64) -> u64 {
        // The share of the distribution above `most_ns`; libm's power is plain arithmetic too.
        let beyond = libm::pow(least_ns / most_ns, exponent);
        let above = beyond + self.uniform() * (1.0 - beyond);
        rounded(least_ns * libm::pow(above, -1.0 / exponent))
    }
}

/// Returns the nearest whole number; of two, the one farther from zero. The same as `f64::round`, for a span and in a
/// few instructions.
#[inline]
#[allow(clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn rounded(span_ns: f64) -> u64 {
    let whole = span_ns as u64;
    whole.saturating_add(u64::from(span_ns - whole as f64 >= 0.5))
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
    #[allow(clippy::cast_sign_loss)]
    fn a_span_is_rounded_as_usual() {
        let below_a_half = 0.5_f64.next_down();
        let exact = 2.0_f64.powi(53);
        let spans = [
            -0.0,
            0.0,
            below_a_half,
            0.5,
            1.5,
            2.5,
            1e6 + 0.49,
            exact - 0.5,
            exact,
            1e19,
            1e300,
        ];
        for span_ns in spans {
            assert_eq!(rounded(span_ns), span_ns.round() as u64, "{span_ns}");
        }
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
