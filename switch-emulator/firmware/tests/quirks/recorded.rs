//! Quirks found in wider recordings of the firmware: 190 to 202.

use smoltcp::wire::ArpOperation;
use zodiac_firmware::{Config, Event, OutputKind};

use super::testbed::{
    everything, fields, output, port, udp, Fields, FlowMod, DELETE, DELETE_STRICT, SETTLE,
};
use super::testbed_network::{arp, Network};
use super::*;

fn entry(number: u16, actions: Vec<u8>) -> FlowMod {
    FlowMod::add(fields(Fields::FiveTuple, number), 5, actions)
}

fn packet_out(in_port: u16, actions: &[u8], data: &[u8]) -> Vec<u8> {
    let head = [
        &[0xff; 4][..],
        &in_port.to_be_bytes(),
        &(actions.len() as u16).to_be_bytes(),
    ]
    .concat();
    message(13, &[&head, actions, data].concat())
}

/// Returns a message to the table, as if the frame had come in on `in_port`.
fn to_table(in_port: u16, data: &[u8]) -> Vec<u8> {
    packet_out(in_port, &output(0xfff9), data)
}

fn reconnect(bed: &mut Testbed) {
    bed.board.disconnected(bed.now);
    bed.connect();
}

/// A DELETE clears the slots of the last place, also if it was another entry that it removed: entries of the next session
/// inherit nothing of them.
#[test]
fn q190_a_delete_clears_the_slots_of_the_last_place() {
    for (quirks, deleted, forwarded) in [
        // None, the first of three, the first two, all.
        (FIRMWARE, 0..0, [true, true, true]),
        (FIRMWARE, 0..1, [false, true, false]),
        (FIRMWARE, 0..2, [false, false, false]),
        (FIRMWARE, 0..3, [false, false, false]),
        (SPEC, 0..0, [false, false, false]),
        (SPEC, 0..3, [false, false, false]),
    ] {
        let mut bed = bed(quirks);
        bed.install((0..3).map(|number| entry(number, output(3))));
        bed.install(
            deleted
                .clone()
                .map(|number| entry(number, vec![]).command(DELETE)),
        );
        reconnect(&mut bed);
        bed.install((0..3).map(|number| entry(number, vec![])));
        let forwards = [0, 1, 2].map(|number| !bed.frame(1, &udp(306, number)).is_empty());
        assert_eq!(forwards, forwarded, "{quirks:?} {deleted:?}");
    }
}

/// The addresses that quirk 46 has written are cleared, too, once a DELETE takes the last entry from that place.
#[test]
fn q190_slots_of_a_moved_entry_are_cleared_when_it_moves_again() {
    let mut bed = bed(FIRMWARE);
    bed.install((0..4).map(|number| entry(number, output(3))));
    // The fourth moves to the second place and from there, after the third has gone, to the first.
    for number in [1, 2, 0] {
        bed.install([entry(number, vec![]).command(DELETE)]);
    }
    assert_ne!(bed.board.flows()[0].actions[0], [0; 16]);
    reconnect(&mut bed);
    bed.install((0..3).map(|number| entry(number, vec![])));
    let slots = bed.board.flows().into_iter().map(|flow| flow.actions);
    let empty: Vec<bool> = slots.map(|slots| slots == [[0; 16]; 4]).collect();
    assert_eq!(empty, [false, true, true]);
}

/// Addresses of action blocks outlive the entries and the session, and so does what a DELETE writes of them.
#[test]
fn q191_flow_statistics_read_addresses_of_former_entries() {
    for (quirks, before, length) in [(FIRMWARE, 8, 324), (FIRMWARE, 12, 356), (SPEC, 8, 300)] {
        let mut bed = bed(quirks);
        bed.install((0..before).map(|number| entry(number, output(3))));
        reconnect(&mut bed);
        bed.install((0..4).map(|number| entry(number, output(3))));
        bed.install([entry(0, vec![]).command(DELETE)]);
        let replies = statistics(&mut bed, 1, &all_flows());
        // With the specification remain three entries with an output.
        let rest = if quirks == SPEC { 12 + 3 * 96 } else { length };
        assert_eq!(replies[0].len(), rest, "{quirks:?} {before}");
    }
    let mut bed = bed(FIRMWARE);
    bed.install((0..8).map(|number| entry(number, output(3))));
    bed.install((4..8).map(|number| entry(number, vec![]).command(DELETE_STRICT)));
    bed.exchange(&entry(9, output(0xfffa)).message()); // refused, and writes no address
    bed.install([entry(0, vec![]).command(DELETE)]);
    assert_eq!(statistics(&mut bed, 1, &all_flows())[0].len(), 324);
}

#[test]
fn q192_replies_without_acknowledgement_fill_the_heap() {
    for (quirks, received) in [(FIRMWARE, 9), (SPEC, 12)] {
        let config = Config {
            acknowledgement_ns: 1_000_000_000,
            ..with(quirks)
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        bed.wait(Duration::from_millis(1_100));
        // All have arrived before the first reply leaves, so none acknowledges it.
        for _ in 0..12 {
            bed.board.segment(bed.now, &message(18, &[]));
        }
        bed.wait(SETTLE);
        assert_eq!(types(&bed.replies), vec![19; received]);
        bed.replies.clear();
        bed.frame(1, &udp(100, 0));
        let told = bed.events == [Event::ReplyHeapFull { message_type: 19 }];
        assert_eq!(
            (told, bed.replies.len()),
            (quirks == FIRMWARE, usize::from(quirks == SPEC))
        );
        bed.wait(Duration::from_millis(1_100));
        bed.replies.clear();
        assert_eq!(
            types(&bed.exchange(&message(18, &[]))),
            [19],
            "acknowledged"
        );
    }
}

#[test]
fn q193_a_long_action_is_read_once_and_spills() {
    let mut vendor = vec![0xff, 0xff, 0, 24];
    vendor.extend(1..=20);
    let add = entry(0, vendor.clone());
    let mut bed = bed(FIRMWARE);
    bed.install([add.clone()]);
    let slots = bed.board.flows()[0].actions;
    assert_eq!(slots[0], vendor[..16]);
    assert_eq!(slots[1][..8], vendor[16..]);
    assert_eq!((slots[2], slots[3]), ([0; 16], [0; 16]));
    let reply = statistics(&mut bed, 1, &all_flows()).remove(0);
    assert_eq!(&reply[12 + 88..], &vendor[..]);
    // Not stepped over, but counted: it is read again for the rest of the list.
    bed.install([entry(1, [vendor.clone(), output(3)].concat())]);
    let slots = bed.board.flows()[1].actions;
    assert_eq!(
        (&slots[0][..], &slots[1][..]),
        (&vendor[..16], &vendor[..16])
    );
    assert_eq!(slots[2][..8], vendor[16..]);
    assert_eq!(errors(&super::bed(SPEC).exchange(&add.message())), [(2, 2)]);
}

#[test]
fn q194_a_frame_for_the_table_is_not_padded_first() {
    for (quirks, length) in [(FIRMWARE, 42), (SPEC, 60)] {
        let frame = &udp(64, 0)[..42];
        let mut bed = bed(quirks);
        let replies = bed.exchange(&to_table(1, frame));
        assert_eq!((types(&replies), replies[0].len()), (vec![10], 18 + length));
        bed.install([entry(0, output(3))]);
        bed.exchange(&to_table(1, frame));
        assert_eq!(bed.departures[0].data.len(), 60, "on the wire");
        assert_eq!(usize::try_from(bed.board.flows()[0].bytes), Ok(length));
    }
}

#[test]
fn q195_frames_that_the_chip_is_to_send_count_as_transmitted() {
    for (quirks, leave) in [(FIRMWARE, 0), (SPEC, 3)] {
        let mut bed = bed(quirks);
        // From the native port: the subtraction borrows, and sets the chip's own bits.
        bed.exchange(&packet_out(4, &output(0xfffb), &udp(100, 0)));
        let ports: u64 = bed.departures.iter().map(|it| it.ports.len() as u64).sum();
        assert_eq!(ports, leave);
        let reply = statistics(&mut bed, 4, &[0xff, 0xff, 0, 0, 0, 0, 0, 0]).remove(0);
        for entry in reply[12..].chunks(104) {
            assert_eq!(number(&entry[16..24]), 1, "{quirks:?}");
        }
    }
}

#[test]
fn q196_the_last_echo_request_comes_before_the_end() {
    for quirks in [FIRMWARE, SPEC] {
        let config = Config {
            ofchecks: true,
            ..with(quirks)
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        let mut given = Vec::new();
        for _ in 0..14 {
            bed.now += TICK;
            bed.board.advance(bed.now);
            given.extend(std::iter::from_fn(|| bed.board.poll_output()));
        }
        given.sort_by_key(|output| output.at);
        let close = given
            .iter()
            .position(|output| output.kind == OutputKind::Close)
            .unwrap();
        let echoes = given[..close].iter().filter(
            |output| matches!(&output.kind, OutputKind::Controller(bytes) if bytes[1] == 2),
        );
        assert_eq!(echoes.count(), 8, "ticks 6 to 13");
    }
}

#[test]
fn q197_a_short_last_header_is_filled_with_what_the_buffer_held() {
    let short = [1, 2, 0, 4];
    let mut bed = bed(FIRMWARE);
    bed.exchange(&[1, 2, 0, 8, 9, 8, 7, 6]);
    assert_eq!(bed.exchange(&short), [[1, 3, 0, 8, 9, 8, 7, 6]]);
    let both = [message(18, &[]), short.to_vec()].concat();
    assert_eq!(types(&bed.exchange(&both)), [19, 3]);
    // By the specification the rest of the header may yet come.
    let mut bed = super::bed(SPEC);
    assert!(bed.exchange(&short).is_empty());
    assert_eq!(errors(&bed.exchange(&[0; 4])), [(1, 6)]);
}

#[test]
fn q197_actions_beyond_the_message_send_nothing() {
    for (quirks, refused) in [(FIRMWARE, vec![]), (SPEC, vec![(1, 6)])] {
        let mut beyond = packet_out(1, &output(3), &[]);
        beyond[15] += 8;
        let mut bed = bed(quirks);
        assert_eq!(errors(&bed.exchange(&beyond)), refused);
        assert!(bed.departures.is_empty());
    }
}

#[test]
fn q198_an_inserted_tag_overwrites_the_next_message() {
    let tagged = [&[0, 1, 0, 8, 0, 5, 0, 0][..], &output(3)].concat();
    for (quirks, actions, replies) in [
        (FIRMWARE, tagged.clone(), vec![]),
        (FIRMWARE, output(3), vec![19]),
        (SPEC, tagged, vec![19]),
    ] {
        let mut bed = bed(quirks);
        bed.install([entry(0, actions.clone())]);
        let segment = [to_table(1, &udp(100, 0)), message(18, &[])].concat();
        assert_eq!(
            types(&bed.exchange(&segment)),
            replies,
            "{quirks:?} {actions:?}"
        );
        assert_eq!(bed.departures.len(), 1);
    }
}

#[test]
fn q199_the_ingress_port_is_left_out_by_its_low_byte() {
    for (quirks, ports) in [(FIRMWARE, 0b110), (SPEC, 0b111)] {
        let mut bed = bed(quirks);
        bed.install([FlowMod::add(everything(), 5, output(0xfffb))]);
        bed.exchange(&to_table(257, &udp(100, 0)));
        assert_eq!(bed.departures[0].ports.bits(), ports);
        bed.departures.clear();
        bed.exchange(&to_table(2, &udp(100, 0)));
        assert_eq!(bed.departures[0].ports.bits(), 0b101);
    }
}

/// Ticks of the session after one that ended by `end` three ticks after the last message, until the board closes it
/// because no features are asked for.
fn ticks_of_the_next_session(quirks: Quirks, end: fn(&mut Testbed)) -> Option<usize> {
    let config = Config {
        ofchecks: true,
        ..with(quirks)
    };
    let mut bed = Testbed::connected(&quiet_profile(), config);
    (0..3).for_each(|_| bed.wait(TICK));
    end(&mut bed);
    bed.closes.clear();
    bed.connects.clear();
    while bed.connects.is_empty() {
        bed.wait(TICK);
    }
    bed.board.connected(bed.now);
    (1..=20).find(|_| {
        bed.wait(TICK);
        !bed.closes.is_empty()
    })
}

#[test]
fn q200_the_end_is_a_sign_of_life_and_a_reset_is_none() {
    let finished = |bed: &mut Testbed| bed.board.finished(bed.now);
    let reset = |bed: &mut Testbed| bed.board.reset(bed.now);
    assert_eq!(ticks_of_the_next_session(FIRMWARE, reset), Some(1));
    assert_eq!(ticks_of_the_next_session(FIRMWARE, finished), Some(2));
    // With the specification no session is closed for want of a request, and counting begins with each.
    assert_eq!(ticks_of_the_next_session(SPEC, reset), Some(13));
    assert_eq!(ticks_of_the_next_session(SPEC, finished), Some(13));
}

/// The board has closed by itself after 13 silent ticks; then the peer ends its half, too, or does not.
#[test]
fn q200_a_late_end_is_a_sign_of_life_too() {
    let silent = |bed: &mut Testbed| {
        while bed.closes.is_empty() {
            bed.wait(TICK);
        }
    };
    let ended = |bed: &mut Testbed| {
        while bed.closes.is_empty() {
            bed.wait(TICK);
        }
        bed.board.finished(bed.now);
    };
    assert_eq!(ticks_of_the_next_session(FIRMWARE, silent), Some(1));
    assert_eq!(ticks_of_the_next_session(FIRMWARE, ended), Some(3));
}

#[test]
fn q202_the_controller_s_address_is_asked_for_rarely() {
    for quirks in [FIRMWARE, SPEC] {
        let mut network = Network::new(&quiet_profile(), with(quirks));
        let mut connection = network.connect();
        network.read(&mut connection);
        for second in 0..130 {
            network.exchange(&mut connection, &message(2, &[]));
            network.wait(Duration::from_millis(996));
            assert_eq!(network.questions.len(), 1, "after {second} s");
        }
        assert_eq!(
            network.questions[0][32..38],
            [0; 6],
            "target hardware address"
        );
    }
}

/// Whoever asks the board tells it his own address by that.
#[test]
fn q202_a_question_answers_one() {
    let mut network = Network::new(&quiet_profile(), with(FIRMWARE));
    network.hand_in(&arp(ArpOperation::Request));
    network.connect();
    assert!(network.questions.is_empty());
}

#[test]
fn half_closed_sessions_take_packet_ins_in_safe_mode() {
    for (ends, arrives) in [
        (Testbed::finish as fn(&mut Testbed), 1),
        (Testbed::reset, 0),
    ] {
        let config = Config {
            fail_state: zodiac_firmware::FailState::Safe,
            ..with(FIRMWARE)
        };
        let mut bed = Testbed::connected(&quiet_profile(), config);
        ends(&mut bed);
        bed.board.frame(bed.now, port(1), &udp(100, 0));
        bed.wait(SETTLE);
        assert_eq!(bed.replies.len(), arrives);
    }
}
