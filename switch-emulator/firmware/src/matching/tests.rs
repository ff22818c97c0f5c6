use proptest::prelude::*;

use super::*;
use crate::profile::{Profile, ZODIAC_FX};

fn costs() -> Costs {
    Costs::new(&Profile::from_toml(ZODIAC_FX).unwrap())
}

fn search(entries: &[(Match, u16)]) -> Search {
    let wires: Vec<_> = entries
        .iter()
        .map(|(fields, priority)| (fields.to_bytes(), *priority))
        .collect();
    let mut search = Search::default();
    search.rebuild(
        &costs(),
        wires
            .iter()
            .map(|(bytes, priority)| (bytes.as_slice(), *priority)),
    );
    search
}

/// Header fields that the firmware reads, by a plain parser.
struct Headers {
    tagged: bool,
    dl_type: u16,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

fn read(frame: &[u8]) -> Headers {
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let two = |at: usize| u16::from_be_bytes([byte(at), byte(at + 1)]);
    let four = |at: usize| u32::from_be_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
    let mut at = 12;
    if two(at) == 0x8847 || two(at) == 0x8848 {
        at += 4;
    }
    let mut tagged = false;
    while [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300].contains(&two(at)) {
        tagged = true;
        at += 4;
    }
    let ip = at + 2;
    let nw_proto = byte(ip + 9);
    let transport = ip + usize::from(byte(ip) % 16) * 4;
    let (tp_src, tp_dst) = match (nw_proto, tagged) {
        (1, false) => (byte(34).into(), byte(35).into()),
        (1, true) => (byte(38).into(), byte(49).into()),
        _ => (two(transport), two(transport + 2)),
    };
    Headers {
        tagged,
        dl_type: two(at),
        nw_proto,
        nw_src: four(ip + 12),
        nw_dst: four(ip + 16),
        tp_src,
        tp_dst,
    }
}

/// Returns the rules of the firmware, one field after the other.
fn plainly_matches(entry: &Match, frame: &[u8], in_port: u16) -> bool {
    let headers = read(frame);
    let arp = headers.dl_type == 0x0806;
    let ipv4 = headers.dl_type == 0x0800;
    let wild = |bit: u32| entry.wildcards & (1 << bit) != 0;
    let address = |shift: u32, entry_value: u32, value: u32| {
        let bits = (entry.wildcards >> shift) % 64;
        bits >= 32 || (ipv4 && entry_value >> bits == value >> bits) || entry_value == 0 || arp
    };
    let port = |bit: u32, entry_value: u16, value: u16| {
        arp || (ipv4
            && [1, 6, 17].contains(&headers.nw_proto)
            && (wild(bit) || entry_value == value || entry_value == 0))
    };
    (wild(0) || entry.in_port == in_port || entry.in_port == 0)
        && (wild(1) || headers.tagged || entry.dl_vlan == 0xffff)
        && (wild(2) || entry.dl_src[..] == frame[6..12])
        && (wild(3) || entry.dl_dst[..] == frame[0..6])
        && (wild(4) || entry.dl_type == headers.dl_type || entry.dl_type == 0)
        && (wild(5) || !ipv4 || entry.nw_proto == headers.nw_proto || entry.nw_proto == 0)
        && address(8, entry.nw_src, headers.nw_src)
        && address(14, entry.nw_dst, headers.nw_dst)
        && port(6, entry.tp_src, headers.tp_src)
        && port(7, entry.tp_dst, headers.tp_dst)
}

/// Returns the search of the firmware, one entry after the other.
fn plainly_find(entries: &[(Match, u16)], frame: &[u8], in_port: u16) -> Found {
    let costs = costs();
    let mut found = Found {
        index: None,
        examined: 0,
        skipped: 0,
        cost_ps: 0,
    };
    for (index, (entry, priority)) in entries.iter().enumerate() {
        if found
            .index
            .is_some_and(|best: usize| *priority <= entries[best].1)
        {
            found.skipped += 1;
            found.cost_ps += costs.skipped_ps();
            continue;
        }
        found.examined += 1;
        found.cost_ps += costs.examined_ps(entry.wildcards);
        found.cost_ps += if found.index.is_some() {
            costs.after_hit_ps()
        } else {
            0
        };
        if plainly_matches(entry, frame, in_port) {
            found.index = Some(index);
        }
    }
    found
}

fn mac() -> impl Strategy<Value = [u8; 6]> {
    prop::sample::select(vec![[0; 6], [0xff; 6], [2, 0, 0, 0, 0, 1]])
}

fn number(values: &[u16]) -> impl Strategy<Value = u16> {
    prop::sample::select(values.to_vec())
}

fn address() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![
        0,
        0x0a00_0001,
        0x0a00_0002,
        0x0a01_0001,
        0xc0a8_0001,
        u32::MAX,
    ])
}

prop_compose! {
    fn entry()(
        wild in any::<u32>(),
        more_wild in prop::sample::select(vec![0, 0x003f_ff00, 0x0030_00ff, 0x003f_ffff]),
        in_port in 0..5_u16,
        dl_src in mac(),
        dl_dst in mac(),
        dl_vlan in number(&[0, 5, 0xffff]),
        dl_type in number(&[0, 0x0800, 0x0806, 0x86dd]),
        nw_proto in number(&[0, 1, 6, 17, 2]),
        nw_src in address(),
        nw_dst in address(),
        tp_src in number(&[0, 8, 53, 1000]),
        tp_dst in number(&[0, 8, 53, 1000]),
        priority in 0..4_u16,
    ) -> (Match, u16) {
        let fields = Match {
            wildcards: wild | more_wild, in_port, dl_src, dl_dst, dl_vlan, dl_vlan_pcp: 3, dl_type, nw_tos: 4,
            nw_proto: nw_proto as u8, nw_src, nw_dst, tp_src, tp_dst,
        };
        (fields, priority)
    }
}

prop_compose! {
    fn likely_frame()(
        dl_src in mac(),
        dl_dst in mac(),
        tags in prop::collection::vec(number(&[0x8100, 0x88a8, 0x8847]), 0..3),
        dl_type in number(&[0x0800, 0x0800, 0x0806, 0x86dd, 0x002e]),
        version in prop::sample::select(vec![0x45_u8, 0x46, 0x4f, 0x00]),
        nw_proto in number(&[1, 6, 17, 2]),
        nw_src in address(),
        nw_dst in address(),
        ports in prop::collection::vec(number(&[0, 8, 53, 1000]), 8),
        rest in prop::collection::vec(any::<u8>(), 0..40),
    ) -> Vec<u8> {
        let mut frame = [dl_dst, dl_src].concat();
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 5]);
        }
        frame.extend(dl_type.to_be_bytes());
        frame.extend([version, 0, 0, 0, 0, 0, 0, 0, 64, nw_proto as u8, 0, 0]);
        frame.extend(nw_src.to_be_bytes());
        frame.extend(nw_dst.to_be_bytes());
        frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        frame.extend(rest);
        frame
    }
}

proptest! {
    #[test]
    fn quick_search_does_what_the_plain_one_does(
        entries in prop::collection::vec(entry(), 0..12),
        frame in prop_oneof![likely_frame(), prop::collection::vec(any::<u8>(), 12..80)],
        in_port in 0..5_u16,
    ) {
        let found = search(&entries).find(&Key::parse(&frame, in_port, false));
        prop_assert_eq!(found, plainly_find(&entries, &frame, in_port));
    }
}

/// Returns a match on a destination prefix; `wild_bits` low bits are free.
fn to(destination: [u8; 4], wild_bits: u32) -> Match {
    Match {
        wildcards: 0x0030_3fff | wild_bits << wildcards::NW_DST_SHIFT,
        nw_dst: u32::from_be_bytes(destination),
        ..Match::read(&[])
    }
}

fn udp_to(destination: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[23] = 17;
    frame[30..34].copy_from_slice(&destination);
    frame
}

/// The worked example of the Loko slides (backup on matching). Its priorities 150000 and 250000 do not fit
/// OpenFlow's 16 bits: 15000 and 25000 keep the order.
#[test]
fn walk_through_the_table_of_the_slides() {
    let entries = [
        (to([10, 0, 0, 0], 16), 150),
        (to([10, 1, 0, 0], 16), 15_000),
        (to([10, 2, 0, 0], 16), 500),
        (to([10, 2, 5, 5], 0), 200),
        (to([10, 3, 0, 0], 16), 25_000),
        (to([10, 4, 0, 0], 16), 25_000),
        (to([10, 2, 5, 0], 8), 25_000),
        (to([10, 2, 5, 0], 8), 100),
        (to([10, 2, 5, 0], 8), 300),
        (to([10, 2, 5, 0], 8), 500),
        (to([10, 2, 0, 0], 16), 500),
    ];
    let found = search(&entries).find(&Key::parse(&udp_to([10, 2, 5, 5]), 1, false));
    // base 6300800 and nw_dst 1303950 for 6 entries, 819200 for 5
    let cost_ps = 6 * 7_604_750 + 5 * 819_200;
    assert_eq!(
        found,
        Found {
            index: Some(6),
            examined: 6,
            skipped: 5,
            cost_ps
        }
    );
}

#[test]
fn among_equal_priorities_the_first_entry_wins() {
    let entries = [(to([10, 0, 0, 0], 8), 7), (to([10, 0, 0, 1], 0), 7)];
    assert_eq!(
        search(&entries)
            .find(&Key::parse(&udp_to([10, 0, 0, 1]), 1, false))
            .index,
        Some(0)
    );
}

#[test]
fn entries_that_share_a_digest_are_told_apart() {
    let entries = [1, 2, 3].map(|host| (to([10, 0, 0, host], 0), 7));
    for (index, host) in [1, 2, 3].into_iter().enumerate() {
        let key = Key::parse(&udp_to([10, 0, 0, host]), 1, false);
        let mut search = search(&entries);
        let shared = search.digests[index];
        search.digests.fill(shared);
        search.index_digests();
        assert_eq!(search.find(&key).index, Some(index));
        let absent = to([10, 0, 0, 9], 0);
        search.rules.fill(Rule::compile(&absent.to_bytes()));
        assert_eq!(search.find(&key).index, None);
    }
}

#[test]
fn an_empty_table_finds_nothing_at_no_cost() {
    let found = search(&[]).find(&Key::parse(&udp_to([10, 0, 0, 1]), 1, false));
    assert_eq!(
        found,
        Found {
            index: None,
            examined: 0,
            skipped: 0,
            cost_ps: 0
        }
    );
}

#[test]
fn neither_ipv6_nor_lldp_match_an_entry_without_fields() {
    let everything = Match {
        wildcards: 0x003f_ffff,
        ..Match::read(&[])
    };
    for dl_type in [0x86dd_u16, 0x88cc] {
        let mut frame = udp_to([10, 0, 0, 1]);
        frame[12..14].copy_from_slice(&dl_type.to_be_bytes());
        assert_eq!(
            search(&[(everything, 1)])
                .find(&Key::parse(&frame, 1, false))
                .index,
            None
        );
    }
}
