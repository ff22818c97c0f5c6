use proptest::prelude::*;

use super::*;

#[test]
fn a_fast_ethernet_frame_takes_80_ns_a_byte() {
    let timing = Timing::new(1e8, 0).expect("in range");
    assert_eq!(timing.wire_ns(306), (8 + 306) * 80);
    assert_eq!(timing.slot_ns(306), (8 + 306 + 12) * 80);
}

#[test]
fn short_frames_are_padded() {
    assert_eq!(size_on_wire(0), 64);
    assert_eq!(size_on_wire(60), 64);
    assert_eq!(size_on_wire(302), 306);
}

#[test]
fn refuses_rates_and_lengths_that_mean_nothing() {
    assert!(Timing::new(0.0, 0).is_err());
    assert!(Timing::new(f64::NAN, 0).is_err());
    assert!(Timing::new(1e8, u64::MAX).is_err());
}

#[test]
fn whoever_reads_the_header_only_has_a_frame_before_its_end() {
    let timing = Timing::new(1e10, 500).expect("in range");
    let arrival_ns = |header_bytes, frame_bytes| {
        Link::new(timing, End::Host(0), header_bytes).arrival_ns(1_000, frame_bytes)
    };
    assert_eq!(arrival_ns(None, 1_518), 1_500 + 1_221);
    assert_eq!(arrival_ns(Some(64), 1_518), 1_500 + 58);
    assert_eq!(arrival_ns(Some(128), 64), 1_500 + 58);
}

proptest! {
    /// Frames keep their order and never overlap, whenever they are offered.
    #[test]
    fn first_in_first_out(offers in prop::collection::vec((0u64..10_000_000, 64u64..1519), 1..100)) {
        let mut link = Link::new(Timing::new(1e8, 500).expect("in range"), End::Host(0), None);
        let mut offers = offers;
        offers.sort_unstable();
        let (mut previous_end_ns, mut previous_arrival_ns) = (0, 0);
        for &(at_ns, bytes) in &offers {
            let begin_ns = link.busy_until_ns().max(at_ns);
            link.occupy(begin_ns, bytes);
            prop_assert!(begin_ns >= at_ns && begin_ns >= previous_end_ns);
            previous_end_ns = begin_ns + link.timing.slot_ns(bytes);
            let arrival_ns = link.arrival_ns(begin_ns, bytes);
            prop_assert!(arrival_ns > previous_arrival_ns);
            previous_arrival_ns = arrival_ns;
        }
    }
}
