use proptest::prelude::*;

use super::*;

#[test]
fn ties_fire_in_the_order_of_arming() {
    let mut schedule = Schedule::new(5);
    for slot in [3, 0, 4] {
        schedule.arm(slot, slot, Some(7));
    }
    let mut fired = Vec::new();
    while let Some((at_ns, slot)) = schedule.first() {
        fired.push((at_ns, slot));
        schedule.arm(slot, slot, None);
    }
    assert_eq!(fired, [(7, 3), (7, 0), (7, 4)]);
}

proptest! {
    /// The tree agrees with a sorted list under any sequence of arming and disarming.
    #[test]
    fn agrees_with_a_sorted_list(steps in prop::collection::vec((0u32..9, prop::option::of(0u64..50)), 1..200)) {
        let mut schedule = Schedule::new(9);
        let mut model: Vec<Option<(u64, usize)>> = vec![None; 9];
        for (order, (slot, at_ns)) in steps.into_iter().enumerate() {
            schedule.arm(slot, slot, at_ns);
            model[slot as usize] = at_ns.map(|at_ns| (at_ns, order));
            let expected = (0u32..9)
                .filter_map(|slot| model[slot as usize].map(|key| (key, slot)))
                .min()
                .map(|((at_ns, _), slot)| (at_ns, slot));
            prop_assert_eq!(schedule.first(), expected);
        }
    }
}
