//! CPU time of frames in OpenFlow 1.3: the fields of each entry up to the first that fails, and each entry of other
//! tables.

#![allow(clippy::cast_possible_wrap)] // instants of a test

mod testbed;

use testbed::{message, output, quiet_config, quiet_profile, udp, Testbed};
use zodiac_firmware::OpenFlow13Costs;

/// `FLOW_MOD` that adds an entry of a table.
fn add(table: u8, priority: u8, oxms: &[u8], port: u16) -> Vec<u8> {
    let length = 4 + oxms.len();
    let mut fields = [&[0, 1], &(length as u16).to_be_bytes()[..], oxms].concat();
    fields.resize(length.next_multiple_of(8), 0);
    let mut action = output(port);
    action.splice(4..4, [0, 0]);
    action.resize(16, 0);
    action[3] = 16;
    let head = [
        &[0; 16][..],
        &[table, 0, 0, 0, 0, 0, 0, priority],
        &[0xff; 12],
        &[0; 4],
    ]
    .concat();
    let apply = [&[0, 4, 0, 24, 0, 0, 0, 0][..], &action].concat();
    let mut bytes = message(14, &[head, fields, apply].concat());
    bytes[0] = 4;
    bytes
}

/// Returns when a frame of port 1 leaves behind these entries and one that sends it to port 2, beside when it leaves
/// without them.
fn extra_ps(entries: &[Vec<u8>]) -> i64 {
    let leaves = |entries: &[Vec<u8>]| {
        let mut bed = Testbed::new(&quiet_profile(), quiet_config());
        bed.board.connected(bed.now);
        bed.exchange(&[4, 0, 0, 8, 0, 0, 0, 7]);
        bed.replies.clear();
        for entry in entries {
            assert!(bed.exchange(entry).is_empty());
        }
        assert!(bed.exchange(&add(0, 0, &[], 2)).is_empty());
        // At the same phase of the main loop, whatever came before.
        let begin = zodiac_firmware::Instant::from_nanos(5_000_000_000);
        bed.wait(begin - bed.now);
        bed.frame(1, &udp(64, 0))[0].at.as_nanos() as i64 - begin.as_nanos() as i64
    };
    1_000 * (leaves(entries) - leaves(&[]))
}

/// Waiting for the main loop, which is idle a little later or earlier, and rounding.
const LOOP_PS: i64 = 4_900_000 + 1_000;

fn costs() -> OpenFlow13Costs {
    quiet_profile().cpu.openflow13.unwrap()
}

const PORT_2: [u8; 8] = [0x80, 0, 0, 4, 0, 0, 0, 2];
const PORT_1: [u8; 8] = [0x80, 0, 0, 4, 0, 0, 0, 1];
const ARP: [u8; 6] = [0x80, 0, 10, 2, 0x08, 0x06];

#[test]
fn an_entry_costs_its_fields_up_to_the_first_that_fails() {
    let costs = costs();
    let early = [&PORT_2[..], &ARP].concat();
    let late = [&PORT_1[..], &ARP].concat();
    for (oxms, each_ps) in [
        (early, costs.in_port.fails_ps),
        (late, costs.in_port.passes_ps + costs.eth_type.fails_ps),
    ] {
        let entries: Vec<_> = (1..=100).map(|number| add(0, number, &oxms, 3)).collect();
        let difference_ps = extra_ps(&entries) - 100 * each_ps;
        assert!(difference_ps.abs() <= LOOP_PS, "{difference_ps} ps");
    }
}

#[test]
fn entries_of_other_tables_cost_a_little() {
    let entries: Vec<_> = (1..=100).map(|number| add(7, number, &PORT_1, 3)).collect();
    let difference_ps = extra_ps(&entries) - 100 * costs().other_table_ps;
    assert!(difference_ps.abs() <= LOOP_PS, "{difference_ps} ps");
}
