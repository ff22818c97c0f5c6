//! `FLOW_MOD`: quirks 37 to 50 and 54 to 60.

use super::testbed::{
    everything, fields, output, udp, Fields, FlowMod, DELETE, DELETE_STRICT, MODIFY, MODIFY_STRICT,
};
use super::*;
use zodiac_firmware::Event;

fn entry(number: u16, priority: u16, to: u16) -> FlowMod {
    FlowMod::add(fields(Fields::FiveTuple, number), priority, output(to))
}

/// Ports by which a frame of the flow leaves.
fn leaves(bed: &mut Testbed, number: u16) -> Vec<u8> {
    bed.frame(1, &udp(306, number))
        .iter()
        .map(|departure| departure.ports.bits())
        .collect()
}

fn priorities(bed: &Testbed) -> Vec<u16> {
    bed.board.flows().iter().map(|flow| flow.priority).collect()
}

/// Returns the result of MODIFY on a table with entries for flows 0 and 1, both to port 3.
fn modified(quirks: Quirks, subject: &FlowMod) -> Testbed {
    let mut bed = bed(quirks);
    bed.install([entry(0, 5, 3), entry(1, 5, 3)]);
    bed.install([subject.clone()]);
    bed
}

#[test]
fn q37_identical_flows_are_appended_and_shadowed() {
    for (quirks, count, port) in [(FIRMWARE, 2, 0b100), (SPEC, 1, 0b010)] {
        let mut bed = bed(quirks);
        bed.install([entry(0, 5, 3), entry(0, 5, 2)]);
        assert_eq!(
            (bed.board.flows().len(), leaves(&mut bed, 0)),
            (count, vec![port])
        );
    }
}

#[test]
fn q38_overlap_is_not_checked() {
    let overlapping = FlowMod {
        flags: 2,
        ..FlowMod::add(everything(), 5, output(2))
    };
    for (quirks, refused) in [(FIRMWARE, vec![]), (SPEC, vec![(3, 1)])] {
        let mut bed = bed(quirks);
        bed.install([entry(0, 5, 3)]);
        assert_eq!(errors(&bed.exchange(&overlapping.message())), refused);
    }
}

#[test]
fn q39_modify_without_a_match_does_nothing() {
    for command in [MODIFY, MODIFY_STRICT] {
        for (quirks, count) in [(FIRMWARE, 2), (SPEC, 3)] {
            assert_eq!(
                modified(quirks, &entry(9, 5, 2).command(command))
                    .board
                    .flows()
                    .len(),
                count
            );
        }
    }
}

#[test]
fn q40_modify_changes_the_first_match_and_appends_a_duplicate() {
    let all_to_2 = FlowMod::add(everything(), 5, output(2)).command(MODIFY);
    for (quirks, count, second) in [(FIRMWARE, 3, 0b100), (SPEC, 2, 0b010)] {
        let mut bed = modified(quirks, &all_to_2);
        assert_eq!(bed.board.flows().len(), count);
        assert_eq!(
            (leaves(&mut bed, 0), leaves(&mut bed, 1)),
            (vec![0b010], vec![second])
        );
    }
}

#[test]
fn q41_old_actions_beyond_the_new_ones_survive() {
    for (quirks, ports) in [(FIRMWARE, vec![0b010, 0b100]), (SPEC, vec![0b010])] {
        let mut bed = bed(quirks);
        bed.install([FlowMod::add(
            fields(Fields::FiveTuple, 0),
            5,
            [output(3), output(3)].concat(),
        )]);
        bed.install([entry(0, 5, 2).command(MODIFY)]);
        assert_eq!(leaves(&mut bed, 0), ports);
    }
}

#[test]
fn q42_the_fifth_action_spills_onto_another_entry() {
    let five = [output(2), output(2), output(2), output(2), output(1)].concat();
    let subject = FlowMod::add(everything(), 5, five).command(MODIFY);
    let flows = modified(FIRMWARE, &subject).board.flows();
    assert_eq!(flows[1].actions[0][5], 1, "flow 1 got the fifth");
    let mut bed = bed(SPEC);
    bed.install([entry(0, 5, 3)]);
    assert_eq!(
        errors(&bed.exchange(&subject.message())),
        [(2, 7)],
        "TOO_MANY"
    );
}

#[test]
fn q43_strict_comparison_is_bytewise() {
    let mut other = entry(0, 5, 3).command(DELETE_STRICT);
    other.fields[20] = 3; // a VLAN priority, though the field is open
    for (quirks, left) in [(FIRMWARE, 1), (SPEC, 0)] {
        let mut bed = bed(quirks);
        bed.install([entry(0, 5, 3)]);
        bed.install([other.clone()]);
        assert_eq!(bed.board.flows().len(), left);
    }
}

/// A delete of what goes to port 2000 selects an entry that leaves that field open, because 2000 is stored in it.
#[test]
fn q44_loose_comparison_ignores_the_wildcards_of_the_entry() {
    let mut open = entry(0, 5, 3);
    open.fields[3] |= 0x80;
    for (quirks, left) in [(FIRMWARE, 0), (SPEC, 1)] {
        let mut bed = bed(quirks);
        bed.install([open.clone()]);
        bed.install([entry(0, 5, 3).command(DELETE)]);
        assert_eq!(bed.board.flows().len(), left);
    }
}

#[test]
fn q45_delete_ignores_out_port() {
    let mut delete = FlowMod::add(everything(), 0, vec![])
        .command(DELETE)
        .message();
    delete[68..70].copy_from_slice(&[0, 2]);
    for (quirks, left) in [(FIRMWARE, 0), (SPEC, 1)] {
        let mut bed = bed(quirks);
        bed.install([entry(0, 5, 3), entry(1, 5, 2)]);
        bed.exchange(&delete);
        assert_eq!(bed.board.flows().len(), left);
    }
}

#[test]
fn q46_what_moves_into_a_gap_drops() {
    for (quirks, forwarded, action_bytes) in [(FIRMWARE, vec![], true), (SPEC, vec![0b100], false)]
    {
        let mut bed = bed(quirks);
        bed.install((0..3).map(|number| entry(number, 5, 3)));
        bed.install([entry(0, 5, 3).command(DELETE)]);
        assert_eq!(leaves(&mut bed, 2), forwarded);
        let told = bed.events == [Event::EntriesLostActions { entries: 1 }];
        assert_eq!(told, quirks == FIRMWARE);
        let reply = statistics(&mut bed, 1, &all_flows()).remove(0);
        let first = number(&reply[12..14]) - 88;
        assert_eq!(
            first == 32 || first == 288,
            action_bytes,
            "{first} bytes of actions"
        );
    }
}

#[test]
fn q47_delete_leaks_memory() {
    for (quirks, refused) in [(FIRMWARE, vec![(3, 0)]), (SPEC, vec![])] {
        let mut bed = bed(quirks);
        for number in 0..192 {
            bed.install([entry(number, 1, 3)]);
            bed.install([FlowMod::add(everything(), 1, vec![]).command(DELETE)]);
        }
        assert_eq!(errors(&bed.exchange(&entry(0, 1, 3).message())), refused);
        assert!(bed
            .events
            .iter()
            .all(|event| event.to_string().contains("quirk 47")));
    }
}

#[test]
fn q48_strict_delete_compares_the_cookie_in_place_of_the_priority() {
    let cookie = |cookie, priority| FlowMod {
        cookie,
        ..entry(0, priority, 3)
    };
    for (quirks, other_cookie, other_priority) in [(FIRMWARE, 1, 0), (SPEC, 0, 1)] {
        let mut bed = bed(quirks);
        bed.install([cookie(77, 5)]);
        bed.install([cookie(0, 5).command(DELETE_STRICT)]);
        assert_eq!(bed.board.flows().len(), other_cookie);
        let mut bed = super::bed(quirks);
        bed.install([cookie(77, 5)]);
        bed.install([cookie(77, 9).command(DELETE_STRICT)]);
        assert_eq!(bed.board.flows().len(), other_priority);
    }
}

#[test]
fn q49_strict_delete_passes_over_what_moves_into_the_gap() {
    let mut bed = bed(FIRMWARE);
    bed.install([entry(0, 5, 3), entry(0, 5, 3), entry(0, 5, 3)]);
    bed.install([entry(0, 5, 3).command(DELETE_STRICT)]);
    assert_eq!(bed.board.flows().len(), 1);
    // Without duplicates nothing moves.
    let mut bed = super::bed(SPEC);
    bed.install([entry(0, 5, 3), entry(1, 5, 3), entry(2, 5, 3)]);
    bed.install([entry(0, 5, 3).command(DELETE_STRICT)]);
    assert_eq!(bed.board.flows().len(), 2);
}

#[test]
fn q50_flow_removed_goes_by_a_flag_of_the_delete() {
    for (quirks, entry_flags, delete_flags, notices) in [
        (FIRMWARE, 1, 0, 0),
        (FIRMWARE, 0, 0x0100, 1),
        (SPEC, 1, 0, 1),
        (SPEC, 0, 0x0100, 0),
    ] {
        let mut bed = bed(quirks);
        bed.install([FlowMod {
            flags: entry_flags,
            ..entry(0, 5, 3)
        }]);
        let delete = FlowMod {
            flags: delete_flags,
            ..entry(0, 5, 3)
        }
        .command(DELETE);
        assert_eq!(types(&bed.exchange(&delete.message())), vec![11; notices]);
    }
}

#[test]
fn q54_actions_beyond_the_fourth_are_ignored() {
    let five = FlowMod::add(everything(), 5, output(3).repeat(5));
    let mut bed = bed(FIRMWARE);
    bed.install([five.clone()]);
    assert_eq!(leaves(&mut bed, 0).len(), 4);
    assert_eq!(
        errors(&super::bed(SPEC).exchange(&five.message())),
        [(2, 7)]
    );
}

#[test]
fn q55_stale_actions_survive() {
    for (quirks, forwarded) in [(FIRMWARE, 1), (SPEC, 0)] {
        let mut bed = bed(quirks);
        bed.install([entry(0, 5, 3)]);
        bed.board.disconnected(bed.now);
        bed.connect();
        bed.install([FlowMod::add(fields(Fields::FiveTuple, 0), 5, vec![])]);
        assert_eq!(leaves(&mut bed, 0).len(), forwarded);
    }
}

/// A new entry with fewer actions than its predecessor goes on sending where that one sent.
#[test]
fn q55_further_outputs_are_inherited() {
    for (quirks, ports) in [(FIRMWARE, vec![0b010, 0b100]), (SPEC, vec![0b010])] {
        let mut bed = bed(quirks);
        let two = [output(2), output(3)].concat();
        bed.install([FlowMod::add(fields(Fields::FiveTuple, 0), 5, two)]);
        bed.board.disconnected(bed.now);
        bed.connect();
        bed.install([entry(0, 5, 2)]);
        assert_eq!(leaves(&mut bed, 0), ports);
    }
}

#[test]
fn q56_every_port_but_normal_is_accepted() {
    for (port, spec) in [
        (0xfffa, vec![(2, 4)]),
        (0xfffe, vec![(2, 4)]),
        (0xfff9, vec![(2, 4)]),
        (99, vec![(2, 4)]),
        (2, vec![]),
    ] {
        let add = FlowMod::add(everything(), 5, output(port)).message();
        let firmware = if port == 0xfffa { vec![(2, 4)] } else { vec![] };
        assert_eq!(errors(&bed(FIRMWARE).exchange(&add)), firmware, "{port:#x}");
        assert_eq!(errors(&bed(SPEC).exchange(&add)), spec, "{port:#x}");
    }
}

#[test]
fn q57_unknown_actions_are_accepted() {
    let cases: [(&[u8], u8); 4] = [
        (&[0, 11, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 8),
        (&[0xff, 0xff, 0, 8, 0, 0, 0, 1], 2),
        (&[0, 77, 0, 8, 0, 0, 0, 0], 0),
        (&[0, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1),
    ];
    for (action, code) in cases {
        let add = FlowMod::add(everything(), 5, action.to_vec()).message();
        assert!(bed(FIRMWARE).exchange(&add).is_empty());
        assert_eq!(errors(&bed(SPEC).exchange(&add)), [(2, code)]);
    }
}

#[test]
fn q58_unknown_commands_are_ignored() {
    let mut bed = bed(FIRMWARE);
    bed.install([entry(0, 5, 3)]);
    bed.install([entry(1, 5, 3).command(9)]);
    assert_eq!(bed.board.flows().len(), 1);
    bed.install([entry(0, 5, 3).command(0x0103)]);
    assert!(bed.board.flows().is_empty(), "the high byte does not count");
    for command in [9, 0x0103] {
        let message = entry(0, 5, 3).command(command).message();
        assert_eq!(errors(&super::bed(SPEC).exchange(&message)), [(3, 4)]);
    }
}

#[test]
fn q59_vlan_0_becomes_strip_vlan() {
    for (quirks, kind) in [(FIRMWARE, 3), (SPEC, 1)] {
        let mut bed = bed(quirks);
        bed.install([FlowMod::add(everything(), 5, vec![0, 1, 0, 8, 0, 0, 0, 0])]);
        assert_eq!(bed.board.flows()[0].actions[0][1], kind);
    }
}

#[test]
fn q60_the_emergency_flag_is_ignored() {
    let emergency = FlowMod {
        flags: 4,
        ..entry(0, 5, 3)
    };
    assert!(bed(FIRMWARE).exchange(&emergency.message()).is_empty());
    assert_eq!(errors(&bed(SPEC).exchange(&emergency.message())), [(3, 5)]);
}

/// DELETE with the order of the table: what stays keeps its order only with the specification.
#[test]
fn q46_the_order_of_the_table_changes() {
    for (quirks, order) in [(FIRMWARE, vec![3, 2]), (SPEC, vec![2, 3])] {
        let mut bed = bed(quirks);
        bed.install([entry(0, 1, 3), entry(1, 2, 3), entry(2, 3, 3)]);
        bed.install([entry(0, 5, 3).command(DELETE)]);
        assert_eq!(priorities(&bed), order);
    }
}
