//! Deviations of the firmware in OpenFlow 1.3 that no recorded exchange shows, and that `docs/quirks.md` names for each
//! what does.

mod testbed;

use serde_json::Value;
use testbed::{everything, message, quiet_config, quiet_profile, udp, FlowMod, Testbed};
use zodiac_firmware::{Cause, Config, CpuPortTags, Event, Hang};

const EXCHANGES: &str = include_str!("exchanges13/examples.jsonl");
const BARRIER_REQUEST: u8 = 20;
/// Returns the board's event about a `FLOW_MOD` that it should have refused.
const UNCHECKED: Event = Event::MessageMisread {
    version: 4,
    message_type: 14,
    cause: Cause::Unchecked,
};

/// Returns a board in a session of OpenFlow 1.3.
fn bed() -> Testbed {
    let mut bed = Testbed::new(&quiet_profile(), quiet_config());
    bed.board.connected(bed.now);
    bed.exchange(&message13(0, &[]));
    bed.exchange(&message13(5, &[]));
    bed.replies.clear();
    bed
}

fn message13(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = message(kind, body);
    bytes[0] = 4;
    bytes
}

/// Returns a `FLOW_MOD` that adds an entry without fields to table 0.
fn add(priority: u16, buffer: u32, instructions: &[u8]) -> Vec<u8> {
    add_with(&[], priority, buffer, instructions)
}

fn add_with(oxms: &[u8], priority: u16, buffer: u32, instructions: &[u8]) -> Vec<u8> {
    let length = 4 + oxms.len();
    let mut fields = [&[0, 1], &(length as u16).to_be_bytes()[..], oxms].concat();
    fields.resize(length.next_multiple_of(8), 0);
    let body = [
        &[0; 22][..],
        &priority.to_be_bytes(),
        &buffer.to_be_bytes(),
        &[0xff; 8],
        &[0; 4],
        &fields,
        instructions,
    ];
    message13(14, &body.concat())
}

/// `APPLY_ACTIONS` with these actions.
fn apply(actions: &[u8]) -> Vec<u8> {
    let length = 8 + actions.len() as u16;
    [&[0, 4], &length.to_be_bytes()[..], &[0; 4], actions].concat()
}

fn output(port: u8) -> Vec<u8> {
    vec![0, 0, 0, 16, 0, 0, 0, port, 0xff, 0xff, 0, 0, 0, 0, 0, 0]
}

#[test]
fn q106_packet_counts_wrap() {
    let mut bed = bed();
    assert!(bed.exchange(&add(1, u32::MAX, &[])).is_empty());
    let packet_out = [
        &u32::MAX.to_be_bytes()[..],
        &[0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 16, 0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0; 14],
    ];
    // Frames of 14 bytes for the table, ten to a segment.
    let segment = message13(13, &packet_out.concat()).repeat(9);
    let frames = 65_536_u64 + 5;
    for _ in 0..frames / 9 {
        bed.exchange(&segment);
    }
    let counted = bed.board.flows13()[0].packets;
    assert_eq!(counted, frames / 9 * 9 - 65_536);
}

#[test]
fn q137_buffers_are_ignored() {
    let mut bed = bed();
    let replies = bed.exchange(&add(1, 7, &apply(&output(2))));
    assert!(replies.is_empty() && bed.departures.is_empty());
    assert_eq!(bed.board.flows13().len(), 1);
    assert_eq!(bed.frame(1, &udp(64, 0)).len(), 1);
}

/// A `FLOW_MOD` that ends before its match does, padding included, adds an entry without instructions. If the segment ends
/// before the length of the match, that is garbage, and no block is large enough.
#[test]
fn q139_a_short_add_has_no_instructions() {
    let whole = add_with(
        &[0x80, 0, 0, 4, 0, 0, 0, 1],
        1,
        u32::MAX,
        &apply(&output(2)),
    );
    let barrier = message13(BARRIER_REQUEST, &[]);
    // Before and within the length of the match, within its fields, within its padding; the last goes on in a barrier.
    for (length, behind, added) in [
        (48, vec![], false),
        (51, vec![], false),
        (52, vec![], true),
        (56, vec![], true),
        (63, vec![], true),
        (48, barrier.clone(), true),
    ] {
        let mut short = whole[..length].to_vec();
        short[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        let mut bed = bed();
        let replies = bed.exchange(&[&short[..], &behind].concat());
        let refused = replies
            .iter()
            .any(|reply| reply[1] == 1 && reply[8..12] == [0, 5, 0, 1]);
        assert_eq!(refused, !added, "{length} bytes");
        let flows = bed.board.flows13();
        assert_eq!(flows.len(), usize::from(added), "{length} bytes");
        assert!(flows.iter().all(|flow| flow.instructions.is_empty()));
        assert!(bed.frame(1, &udp(64, 0)).is_empty());
        assert_eq!(bed.exchange(&barrier).len(), 1, "the board goes on");
    }
}

/// The word that an instruction of an unknown type overwrites is harmless unless it is outside the RAM.
#[test]
fn q155_unknown_instructions() {
    for (kind, hangs) in [
        (8_u16, false),
        (32, false),
        (0x0415, false),
        (0x7fff, false),
        (0x8000, true),
        (0xffff, true),
    ] {
        let [high, low] = kind.to_be_bytes();
        let unknown = [high, low, 0, 8, 0, 0, 0, 0];
        let mut bed = bed();
        let instructions = [&unknown[..], &apply(&output(2))].concat();
        bed.exchange(&add(1, u32::MAX, &instructions));
        assert_eq!(
            bed.frame(1, &udp(64, 0)).len(),
            usize::from(!hangs),
            "{kind:#x}"
        );
        let cause = Hang::Instruction;
        let told = [UNCHECKED, Event::BoardHung { cause }];
        assert_eq!(bed.events, told[..=usize::from(hangs)], "{kind:#x}");
        let barrier = message13(BARRIER_REQUEST, &[]);
        assert_eq!(bed.exchange(&barrier).is_empty(), hangs, "{kind:#x}");
    }
}

#[test]
fn q173_undefined_groups_send_nothing() {
    for id in [0, 4, 5, 0xff] {
        let mut bed = bed();
        let group = [0, 22, 0, 8, 0, 0, 0, id];
        bed.exchange(&add(1, u32::MAX, &apply(&group)));
        assert!(bed.frame(1, &udp(64, 0)).is_empty());
        assert_eq!(bed.events, [UNCHECKED]);
    }
}

#[test]
fn q180_a_meter_without_memory_vanishes() {
    let meter = |command: u8, id: u8, bands: usize| {
        let band = [0, 1, 0, 16, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0];
        message13(
            29,
            &[&[0, command, 0, 1, 0, 0, 0, id], &band.repeat(bands)[..]].concat(),
        )
    };
    let mut bed = bed();
    for id in 1..=3 {
        assert!(bed.exchange(&meter(0, id, 0)).is_empty());
    }
    // Entries of 56 + 72 + 96 bytes take all that is large.
    let oxms = [&[0x80, 0, 0xfe, 68], &[0; 68][..]].concat();
    let instructions = apply(&[0, 11, 0, 88].repeat(22));
    for priority in 0.. {
        if !bed
            .exchange(&add_with(&oxms, priority, u32::MAX, &instructions))
            .is_empty()
        {
            break;
        }
    }
    let [error] = &bed.exchange(&meter(1, 2, 3))[..] else {
        panic!("one error");
    };
    assert_eq!(error[8..12], [0, 12, 0, 11]);
    for (id, known) in [(1, true), (2, false), (3, false)] {
        let replies = bed.exchange(&message13(
            18,
            &[0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, id, 0, 0, 0, 0],
        ));
        assert_eq!(replies[0][1] == 19, known, "meter {id}");
    }
}

/// An entry of 1.0 without actions carries out what instructions of 1.3 have left in its slots; the counters of a meter
/// start with what a match of 1.0 has left.
#[test]
fn q189_blocks_keep_what_the_other_version_wrote() {
    // 64 bytes, whose second 16 are an output of 1.0 to port 3, and the others no output.
    let both = [&output(2)[..8], &[0, 0, 0, 8, 0, 3, 0, 0]].concat();
    let pop_vlan = [0, 18, 0, 8, 0, 0, 0, 0];
    let instructions = apply(&[both, output(2), output(2), pop_vlan.to_vec()].concat());
    let mut bed = bed();
    for priority in [1, 2] {
        assert!(bed
            .exchange(&add(priority, u32::MAX, &instructions))
            .is_empty());
    }
    bed.board.disconnected(bed.now);
    bed.connect();
    bed.install([FlowMod::add(everything(), 1, vec![])]);
    let departures = bed.frame(1, &udp(64, 0));
    let ports: Vec<_> = departures.iter().map(|it| it.ports.bits()).collect();
    assert_eq!(ports, [0b100]);

    bed.board.disconnected(bed.now);
    bed.board.connected(bed.now);
    bed.exchange(&message13(0, &[]));
    bed.exchange(&message13(5, &[]));
    let band = [0, 1, 0, 16, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0];
    let meter = [&[0, 0, 0, 1, 0, 0, 0, 1][..], &band.repeat(2)].concat();
    assert!(bed.exchange(&message13(29, &meter)).is_empty());
    let request = [0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let reply = bed.exchange(&message13(18, &request)).remove(0);
    let mut packets = reply[32..40].to_vec();
    packets.reverse();
    assert_eq!(packets, everything()[..8]);
}

/// The event of each hang names the cause and the remedy.
#[test]
fn hangs_are_explained() {
    for (instructions, cause) in [
        (vec![0, 4, 0, 0, 0, 0, 0, 0], Hang::Instruction),
        (apply(&[0, 0, 0, 0, 0, 0, 0, 2]), Hang::Action),
    ] {
        let mut bed = bed();
        bed.exchange(&add(1, u32::MAX, &instructions));
        bed.frame(1, &udp(64, 0));
        assert_eq!(bed.events, [UNCHECKED, Event::BoardHung { cause }]);
        let text = bed.events[1].to_string();
        assert!(
            text.contains("quirks 154") || text.contains("quirk 154"),
            "{text}"
        );
    }
}

/// Entries of 1.3 are not those of 1.0, whose flow statistics hang on them (quirk 85).
#[test]
fn the_version_can_change_over_entries() {
    let config = Config {
        ofchecks: false,
        ..quiet_config()
    };
    let mut bed = Testbed::new(&quiet_profile(), config);
    bed.board.connected(bed.now);
    bed.exchange(&message13(0, &[]));
    bed.exchange(&add(1, u32::MAX, &apply(&output(2))));
    bed.exchange(&message(0, &[]));
    assert_eq!(bed.events, [Event::ForeignEntries { entries: 1 }]);
    let missed = bed.frame(1, &udp(64, 0));
    assert!(missed.is_empty());
    bed.replies.clear(); // the PACKET_IN of the miss
    let all = [&[0, 1, 0, 0][..], &[0; 44]].concat();
    assert!(bed.exchange(&message(16, &all)).is_empty());
    let cause = Hang::ForeignEntries;
    assert_eq!(bed.events[1..], [Event::BoardHung { cause }]);
}

/// Each of the 106 has a line in the documentation, which names a file that exists, and an exchange or a test that shows it.
#[test]
fn every_quirk_of_openflow_1_3_has_a_line_and_evidence() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/quirks.md")).unwrap();
    let own = std::fs::read_to_string(root.join("tests/quirks13.rs")).unwrap();
    let cases: Vec<Value> = EXCHANGES
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for quirk in 84..=189 {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {quirk} |")))
            .unwrap_or_else(|| panic!("no line for quirk {quirk}"));
        let place = row.split(" | ").nth(3).unwrap_or_default();
        assert!(
            root.join("src").join(place).is_file(),
            "quirk {quirk}: no file `{place}`"
        );
        let named = row.rsplit('`').nth(1).unwrap_or_default();
        let recorded = cases.iter().any(|case| {
            let shown = case["quirks"].as_array().unwrap();
            case["name"] == named && shown.contains(&Value::from(quirk))
        });
        let tested =
            named.starts_with(&format!("q{quirk}_")) && own.contains(&format!("fn {named}("));
        assert!(recorded || tested, "quirk {quirk} names `{named}`");
    }
}

/// An entry that matches a tag sends frames on only if the port to the CPU keeps tags; without, they are frames like others.
#[test]
fn tags_match_only_if_the_port_to_the_cpu_keeps_them() {
    let tag_3 = [&[0x80, 0, 12, 2], &[0x10, 3][..]].concat();
    let untagged = [&[0x80, 0, 12, 2], &[0, 0][..]].concat();
    let frame = udp(100, 0);
    let tagged = [&frame[..12], &[0x81, 0, 0, 3], &frame[12..]].concat();
    let twice = [&frame[..12], &[0x81, 0, 0, 9], &tagged[12..]].concat();
    for (tags, leaves, sent) in [
        (CpuPortTags::Kept, 0b010, tagged.clone()),
        (CpuPortTags::Removed, 0b100, frame.clone()),
    ] {
        let mut profile = quiet_profile();
        profile.integrated_switch.cpu_port_tags = tags;
        let mut bed = Testbed::new(&profile, quiet_config());
        bed.board.connected(bed.now);
        bed.exchange(&message13(0, &[]));
        bed.exchange(&message13(5, &[]));
        bed.exchange(&add_with(&tag_3, 1, u32::MAX, &apply(&output(2))));
        bed.exchange(&add_with(&untagged, 2, u32::MAX, &apply(&output(3))));
        for _ in 0..2 {
            bed.frame(1, &twice); // which has the other's tag if it loses one
            let left = bed.frame(1, &tagged);
            assert_eq!(left.len(), 1);
            assert_eq!((left[0].ports.bits(), &left[0].data), (leaves, &sent));
        }
        let left = bed.frame(1, &frame);
        assert_eq!((left[0].ports.bits(), &left[0].data), (0b100, &frame));
    }
}
