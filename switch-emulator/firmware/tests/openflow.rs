//! Answers of the agent, message by message. The exchanges in `conformance.rs` go deeper.

mod testbed;

use testbed::{
    everything, fields, message, output, port, quiet_config, quiet_profile, udp, Fields, FlowMod,
    Testbed, DELETE, DELETE_STRICT, MODIFY, MODIFY_STRICT,
};
use zodiac_firmware::{Config, Duration, Event, Instant, MacAddress, Quirks};

const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const VENDOR: u8 = 4;
const FEATURES_REQUEST: u8 = 5;
const GET_CONFIG_REQUEST: u8 = 7;
const SET_CONFIG: u8 = 9;
const PACKET_OUT: u8 = 13;
const PORT_MOD: u8 = 15;
const STATS_REQUEST: u8 = 16;
const BARRIER_REQUEST: u8 = 18;

fn bed() -> Testbed {
    Testbed::connected(&quiet_profile(), quiet_config())
}

#[test]
fn short_requests_get_their_replies() {
    let mut bed = bed();
    assert_eq!(
        bed.exchange(&message(ECHO_REQUEST, b"data")),
        [[1, 3, 0, 8, 0, 0, 0, 7]]
    );
    assert_eq!(
        bed.exchange(&message(BARRIER_REQUEST, &[])),
        [[1, 19, 0, 8, 0, 0, 0, 7]]
    );
    assert!(bed
        .exchange(&message(SET_CONFIG, &[0, 0, 0, 99]))
        .is_empty());
    assert_eq!(
        bed.exchange(&message(GET_CONFIG_REQUEST, &[])),
        [[1, 8, 0, 12, 0, 0, 0, 7, 0, 0, 0x80, 0]]
    );
    assert_eq!(
        bed.exchange(&message(VENDOR, &[0, 0, 0, 1])),
        [[1, 1, 0, 12, 0, 0, 0, 7, 0, 1, 0, 3]]
    );
    assert!(bed.exchange(&message(PORT_MOD, &[0; 24])).is_empty());
    assert!(matches!(
        bed.events.last(),
        Some(Event::RequestIgnored {
            message_type: PORT_MOD,
            ..
        })
    ));
}

#[test]
fn features_name_the_datapath_and_the_openflow_ports() {
    let mac = MacAddress([2, 4, 6, 8, 10, 12]);
    let mut bed = Testbed::connected(
        &quiet_profile(),
        Config {
            mac,
            ..quiet_config()
        },
    );
    bed.board.link_state(bed.now, port(2), false);
    let reply = &bed.exchange(&message(FEATURES_REQUEST, &[]))[0];
    assert_eq!(reply.len(), 176);
    assert_eq!(reply[8..16], [0, 0, 2, 4, 6, 8, 10, 12]);
    for (index, description) in reply[32..].chunks(48).enumerate() {
        assert_eq!(description[..2], [0, index as u8 + 1]);
        assert_eq!(&description[8..12], format!("eth{index}").as_bytes());
        assert_eq!(description[31], u8::from(index == 1), "only port 2 is down");
    }
}

#[test]
fn the_factory_sequence_of_port_addresses() {
    let mut bed = Testbed::new(&quiet_profile(), quiet_config());
    bed.board.connected(bed.now);
    bed.exchange(&message(HELLO, &[]));
    let reply = &bed.exchange(&message(FEATURES_REQUEST, &[]))[0];
    assert_eq!(reply[34..40], [0xcb, 0x4e, 0x3e, 0xa4, 0x00, 0x30]);
    assert_eq!(reply[82..88], [0x9d, 0xab, 0x65, 0x6d, 0x8d, 0xbf]);
    assert_eq!(reply[130..136], [0xe4, 0xb9, 0x3f, 0x35, 0x4b, 0xc9]);
}

#[test]
fn several_messages_in_a_segment_are_handled_in_order() {
    let replies =
        bed().exchange(&[message(BARRIER_REQUEST, &[]), message(ECHO_REQUEST, &[])].concat());
    assert_eq!(
        replies.iter().map(|reply| reply[1]).collect::<Vec<_>>(),
        [19, 3]
    );
}

/// Eight `FLOW_MOD`s of 80 bytes and a BARRIER written at once come in segments of 536 and 112 bytes.
#[test]
fn a_message_split_over_segments_is_lost_and_reported() {
    let mut bed = bed();
    let mut written: Vec<u8> = (0..8)
        .flat_map(|number| FlowMod::add(fields(Fields::FiveTuple, number), 1, output(3)).message())
        .collect();
    written.extend(message(BARRIER_REQUEST, &[]));
    let replies: Vec<_> = written
        .chunks(536)
        .flat_map(|segment| bed.exchange(segment))
        .collect();
    assert!(replies.is_empty());
    assert_eq!(bed.board.flows().len(), 6);
    assert_eq!(
        bed.events[0],
        Event::MessageSplit {
            message_type: 14,
            length_bytes: 80,
            available_bytes: 56
        }
    );
    assert!(bed.events[0].to_string().contains("within 536 bytes"));
    assert!(matches!(bed.events[1], Event::HeaderRefused { .. }));
}

#[test]
fn identical_flows_are_appended_and_the_older_one_wins() {
    let mut bed = bed();
    bed.install([
        FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(3)),
        FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(2)),
    ]);
    assert_eq!(bed.board.flows().len(), 2);
    assert_eq!(bed.frame(1, &udp(306, 0))[0].ports.bits(), 0b100);
    assert_eq!(bed.board.flows()[0].packets, 1);
    assert_eq!(bed.board.flows()[0].bytes, 302);
}

#[test]
fn modify_changes_the_first_match_and_appends_a_duplicate() {
    for command in [MODIFY, MODIFY_STRICT] {
        let mut bed = bed();
        bed.install([FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(3))]);
        bed.install([FlowMod::add(fields(Fields::FiveTuple, 0), 5, output(2)).command(command)]);
        assert_eq!(bed.board.flows().len(), 2);
        assert_eq!(bed.frame(1, &udp(306, 0))[0].ports.bits(), 0b010);
        bed.install([FlowMod::add(fields(Fields::FiveTuple, 9), 5, output(2)).command(command)]);
        assert_eq!(
            bed.board.flows().len(),
            2,
            "without a match nothing happens"
        );
    }
}

#[test]
fn delete_moves_the_last_entry_and_takes_its_actions() {
    let mut bed = bed();
    bed.install(
        (0..3).map(|number| FlowMod::add(fields(Fields::FiveTuple, number), number, output(3))),
    );
    bed.install([FlowMod::add(fields(Fields::FiveTuple, 0), 0, vec![]).command(DELETE)]);
    let priorities: Vec<_> = bed.board.flows().iter().map(|flow| flow.priority).collect();
    assert_eq!(priorities, [2, 1]);
    assert!(
        bed.frame(1, &udp(306, 2)).is_empty(),
        "the moved entry drops"
    );
    assert_eq!(bed.board.counters().dropped_flow, 1);
    assert_eq!(bed.frame(1, &udp(306, 1)).len(), 1);
}

#[test]
fn strict_delete_compares_the_cookie_and_moves_the_last_entry_whole() {
    let mut bed = bed();
    let entry = |number, cookie| FlowMod {
        cookie,
        ..FlowMod::add(fields(Fields::FiveTuple, number), number, output(3))
    };
    bed.install((0..3).map(|number| entry(number, 77)));
    bed.install([entry(0, 0).command(DELETE_STRICT)]);
    assert_eq!(bed.board.flows().len(), 3, "another cookie");
    bed.install([FlowMod {
        priority: 9,
        ..entry(0, 77)
    }
    .command(DELETE_STRICT)]);
    assert_eq!(
        bed.board
            .flows()
            .iter()
            .map(|flow| flow.priority)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    assert_eq!(bed.frame(1, &udp(306, 2)).len(), 1);
}

/// Only if the DELETE itself carries flag 0x0100; the standard's flag of the entry (0x0001) does not count.
#[test]
fn flow_removed_is_sent_for_a_flag_of_the_delete() {
    let mut bed = bed();
    for (flags, notices) in [(0x0001, 0), (0x0100, 1)] {
        let entry = FlowMod {
            cookie: 5,
            flags: 1,
            ..FlowMod::add(fields(Fields::FiveTuple, 0), 9, output(3))
        };
        bed.install([entry.clone()]);
        bed.frame(1, &udp(306, 0));
        let replies = bed.exchange(
            &FlowMod {
                flags,
                ..entry.clone()
            }
            .command(DELETE)
            .message(),
        );
        assert_eq!(replies.len(), notices);
        for notice in replies {
            assert_eq!((notice.len(), notice[1]), (88, 11));
            assert_eq!(notice[8..48], entry.fields);
            assert_eq!(notice[48..59], [0, 0, 0, 0, 0, 0, 0, 5, 0, 9, 2]);
            assert_eq!(
                notice[72..88],
                [1, 0, 0, 0, 0, 0, 0, 0, 46, 1, 0, 0, 0, 0, 0, 0]
            );
        }
    }
}

#[test]
fn the_table_holds_128_entries() {
    let mut bed = bed();
    bed.install(
        (0..128).map(|number| FlowMod::add(fields(Fields::FiveTuple, number), number, output(3))),
    );
    let refused = FlowMod::add(fields(Fields::FiveTuple, 200), 1, output(3)).message();
    let error = &bed.exchange(&refused)[0];
    assert_eq!(error[..12], [1, 1, 0, 76, 0, 0, 0, 7, 0, 3, 0, 0]);
    assert_eq!(error[12..], refused[..64]);
    assert_eq!(
        bed.events,
        [Event::MessageRefused {
            version: 1,
            message_type: 14,
            error_type: 3,
            error_code: 0,
            quirks: Quirks::Firmware,
        }]
    );
}

/// Deleted entries free no memory: after 192 ADDs nothing more fits, until the next session.
#[test]
fn deletes_leak_memory() {
    let mut bed = bed();
    for number in 0..192 {
        bed.install([FlowMod::add(
            fields(Fields::FiveTuple, number),
            1,
            output(3),
        )]);
        bed.install([FlowMod::add(everything(), 1, vec![]).command(DELETE)]);
    }
    assert!(bed.board.flows().is_empty());
    let add = FlowMod::add(fields(Fields::FiveTuple, 0), 1, output(3)).message();
    assert_eq!(bed.exchange(&add)[0][8..12], [0, 3, 0, 0]);
    bed.board.disconnected(bed.now);
    bed.connect();
    assert!(bed.exchange(&add).is_empty());
}

#[test]
fn port_normal_is_refused() {
    let mut bed = bed();
    let error = &bed.exchange(&FlowMod::add(everything(), 1, output(0xfffa)).message())[0];
    assert_eq!(error[8..12], [0, 2, 0, 4]);
    assert!(bed.board.flows().is_empty());
}

/// An ADD without actions onto memory that was used before does what the old entry did.
#[test]
fn stale_actions_survive_a_reconnect() {
    let mut bed = bed();
    bed.install([FlowMod::add(everything(), 1, output(3))]);
    bed.board.disconnected(bed.now);
    bed.connect();
    assert!(bed.board.flows().is_empty(), "secure mode clears the table");
    bed.install([FlowMod::add(everything(), 1, vec![])]);
    assert_eq!(bed.frame(1, &udp(306, 0)).len(), 1);
}

#[test]
fn a_miss_sends_the_whole_frame_to_the_controller() {
    let mut bed = bed();
    let frame = udp(306, 0);
    assert!(bed.frame(2, &frame).is_empty());
    let notice = &bed.replies[0];
    assert_eq!(
        notice[..18],
        [1, 10, 1, 64, 0, 0, 0, 0, 255, 255, 255, 255, 1, 46, 0, 2, 0, 0]
    );
    assert_eq!(notice[18..], frame);
    assert_eq!(bed.board.counters().missed, 1);
}

#[test]
fn packet_out_sends_to_the_last_port() {
    let mut bed = bed();
    let body = |in_port: u16, actions: &[u8], data: &[u8]| {
        let head = [
            &[0xff; 4],
            &in_port.to_be_bytes()[..],
            &(actions.len() as u16).to_be_bytes(),
        ]
        .concat();
        message(PACKET_OUT, &[&head, actions, data].concat())
    };
    let data = udp(100, 0);
    let mut sent = |message: &[u8]| {
        bed.exchange(message);
        bed.wait(Duration::from_millis(1));
        std::mem::take(&mut bed.departures)
            .into_iter()
            .map(|it| (it.ports.bits(), it.data))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sent(&body(1, &[output(3), output(2)].concat(), &data)),
        [(0b0010, data.clone())]
    );
    assert_eq!(
        sent(&body(1, &output(0xfffb), &data)),
        [(0b0110, data.clone())],
        "flood"
    );
    assert_eq!(
        sent(&body(1, &output(1), &data)),
        [(0b0001, data.clone())],
        "back to where it came from"
    );
    assert_eq!(
        sent(&body(2, &[], &data)),
        [(0b0010, data.clone())],
        "no action: to the ingress port"
    );
    assert_eq!(
        sent(&body(1, &output(3), &[])),
        [(0b0100, vec![0; 60])],
        "no data: zeros"
    );
    assert!(
        sent(&body(1, &output(0xfffd), &data)).is_empty(),
        "never back to the controller"
    );
}

fn statistics(bed: &mut Testbed, kind: u16, body: &[u8]) -> Vec<Vec<u8>> {
    bed.exchange(&message(
        STATS_REQUEST,
        &[&kind.to_be_bytes()[..], &[0, 0], body].concat(),
    ))
}

#[test]
fn statistics_that_exist() {
    let mut bed = bed();
    bed.install([FlowMod::add(everything(), 1, output(3))]);
    bed.frame(1, &udp(306, 0));
    let description = &statistics(&mut bed, 0, &[])[0];
    assert_eq!(description.len(), 1068);
    assert!(description[12..].starts_with(b"Northbound Networks\0"));
    let flows = &statistics(&mut bed, 1, &[0; 44])[0];
    assert_eq!(flows.len(), 12 + 88 + 8);
    assert_eq!(
        flows[84..100],
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 46]
    );
    let table = &statistics(&mut bed, 3, &[])[0];
    assert_eq!(
        table[52..76],
        [0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    );
    let ports = &statistics(&mut bed, 4, &[0xff, 0xff, 0, 0, 0, 0, 0, 0])[0];
    assert_eq!(ports.len(), 12 + 3 * 104);
    assert_eq!(
        ports[20..28],
        [0, 0, 0, 0, 0, 0, 0, 1],
        "received on port 1"
    );
    let one = &statistics(&mut bed, 4, &[0, 3, 0, 0, 0, 0, 0, 0])[0];
    assert_eq!(one[28..36], [0, 0, 0, 0, 0, 0, 0, 1], "sent by port 3");
    let error = &statistics(&mut bed, 4, &[0, 4, 0, 0, 0, 0, 0, 0])[0];
    assert_eq!(error[..], [1, 1, 0, 12, 0, 0, 0, 0, 0, 1, 0, 2]);
    assert!(
        statistics(&mut bed, 2, &[0; 44]).is_empty(),
        "aggregate statistics do not exist"
    );
}

/// A reply of more than 2048 bytes overruns its memory.
#[test]
fn too_long_flow_statistics_hang_the_board() {
    let mut bed = bed();
    let two_actions = [output(3), output(2)].concat();
    bed.install(
        (0..19)
            .map(|number| FlowMod::add(fields(Fields::FiveTuple, number), 1, two_actions.clone())),
    );
    assert_eq!(statistics(&mut bed, 1, &[0; 44])[0].len(), 1988);
    bed.install([FlowMod::add(everything(), 1, two_actions)]);
    assert!(statistics(&mut bed, 1, &[0; 44]).is_empty());
    let overrun = Event::StatsReplyOverrun { length_bytes: 2092 };
    assert_eq!(bed.events.last(), Some(&overrun));
    assert!(bed.exchange(&message(ECHO_REQUEST, &[])).is_empty());
    assert!(bed.frame(1, &udp(306, 0)).is_empty());
}

#[test]
fn the_ethertype_filter_drops_unusual_frames() {
    let mut bed = Testbed::connected(
        &quiet_profile(),
        Config {
            ethertype_filter: true,
            ..quiet_config()
        },
    );
    let mut frame = udp(306, 0);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    bed.frame(1, &frame);
    assert!(bed.replies.is_empty());
    assert_eq!(bed.board.counters().dropped_policy, 1);
}

#[test]
fn impossible_frames_are_reported() {
    let mut bed = bed();
    bed.frame(1, &[0; 13]);
    bed.frame(1, &vec![0; 1_532]);
    bed.frame(4, &[0; 60]);
    assert_eq!(
        bed.events,
        [
            Event::FrameMalformed { length_bytes: 13 },
            Event::FrameMalformed {
                length_bytes: 1_532
            },
            Event::PortNotOpenFlow { port: 4 },
        ]
    );
    assert_eq!(bed.board.counters().dropped_size, 2);
    assert_eq!(bed.board.counters().dropped_policy, 1);
}

#[test]
fn power_comes_on_with_the_first_call() {
    let late = Instant::from_nanos(1_800_000_000_000_000_000);
    let profile = quiet_profile();
    let mut board = zodiac_firmware::Board::new(&profile, Config::default(), 3).unwrap();
    assert_eq!(board.poll_at(), Some(Instant::ZERO));
    board.advance(late);
    assert_eq!(board.poll_at(), Some(late + Duration::from_millis(501)));
}

/// The flow cache must be invalidated by whatever changes the table.
#[test]
fn a_frame_that_came_before_goes_by_the_table_as_it_is_now() {
    let mut bed = Testbed::connected(&quiet_profile(), quiet_config());
    let entry = |priority, port| FlowMod::add(fields(Fields::FiveTuple, 0), priority, output(port));
    let frame = udp(306, 0);
    let ports = |bed: &mut Testbed, ingress: u8| -> Vec<u8> {
        let departures = (0..3).flat_map(|_| bed.frame(ingress, &frame));
        let ports = departures.map(|departure| departure.ports.bits()).collect();
        bed.replies.clear(); // PACKET_IN of what no entry matches
        ports
    };
    bed.install([entry(1, 3)]);
    assert_eq!(ports(&mut bed, 1), [0b100; 3]);
    assert!(
        ports(&mut bed, 3).is_empty(),
        "never back to the ingress port"
    );
    bed.install([entry(2, 2)]);
    assert_eq!(ports(&mut bed, 1), [0b010; 3]);
    bed.install([FlowMod::add(fields(Fields::FiveTuple, 0), 3, vec![])]);
    assert!(ports(&mut bed, 1).is_empty(), "the best entry drops");
    bed.install([FlowMod::add(everything(), 0, vec![]).command(DELETE)]);
    assert!(ports(&mut bed, 1).is_empty(), "no entry is left");
    bed.install([entry(1, 2)]);
    assert_eq!(ports(&mut bed, 1), [0b010; 3]);
    assert_eq!(bed.board.flows()[0].packets, 3, "each frame counts");
}
