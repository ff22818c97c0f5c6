//! Deviations that show only on the wire: connections that stay behind, truncated frames.

use smoltcp::wire::{TcpControl, TcpRepr};
use zodiac_firmware::{Config, Duration, Event, FailState};

use super::{with, FIRMWARE, SPEC};
use crate::testbed::{
    everything, message, output, port, quiet_config, quiet_profile, udp, FlowMod,
};
use crate::testbed_network::{Connection, Network, Segment, PEER_INITIAL};

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
/// An `ECHO_REPLY` of version 0.
const ECHO_REPLY_0: [u8; 8] = [0, 3, 0, 8, 0, 0, 0, 7];

fn network(config: Config) -> Network {
    Network::new(&quiet_profile(), config)
}

/// With an OpenFlow 1.0 session.
fn established(config: Config) -> (Network, Connection) {
    let mut network = network(config);
    let mut connection = network.connect();
    network.read(&mut connection);
    network.exchange(&mut connection, &message(0, &[]));
    network.exchange(&mut connection, &message(5, &[]));
    (network, connection)
}

/// Makes a frame miss the table. Returns whether a connection carries a `PACKET_IN`.
fn miss(network: &mut Network, connection: &mut Connection) -> bool {
    let now = network.bed.now;
    network.bed.board.frame(now, port(1), &udp(306, 0));
    network.wait(Duration::from_millis(4));
    network.read(connection).get(1) == Some(&10)
}

fn finish(network: &mut Network, connection: &mut Connection) {
    network.send(&TcpRepr {
        control: TcpControl::Fin,
        ..connection.header()
    });
    connection.next += 1;
    network.wait(Duration::from_millis(4));
}

fn of(network: &Network, control: TcpControl) -> impl Iterator<Item = &Segment> {
    let segments = network.segments.iter();
    segments.filter(move |segment| segment.control == control)
}

/// The peer gets a frame that is shorter than its IP header says, again and again, and nothing behind it.
#[test]
fn q14_truncated_frames_on_the_wire() {
    let two = [message(7, &[]), message(18, &[])].concat();
    let (mut network, mut connection) = established(with(FIRMWARE));
    assert!(network.exchange(&mut connection, &two).is_empty());
    assert!(matches!(
        network.bed.events[..],
        [Event::ReplyTruncated {
            segment_bytes: 20,
            sent_bytes: 12
        }]
    ));
    network.wait(Duration::from_millis(10_000));
    let cut = network.segments.iter().filter(|segment| {
        segment.missing == 8
            && segment.payload.len() == 12
            && segment.sequence == connection.expected
    });
    assert!(cut.count() >= 2, "{:?}", network.segments);

    let (mut network, mut connection) = established(with(SPEC));
    assert_eq!(network.exchange(&mut connection, &two).len(), 20);
}

#[test]
fn q16_the_board_s_half_of_a_connection_stays_open() {
    let (mut network, mut connection) = established(quiet_config());
    network.segments.clear();
    finish(&mut network, &mut connection);
    let acknowledged = network.segments.last().expect("an acknowledgement");
    assert_eq!(acknowledged.acknowledges, Some(connection.next));
    let syn = network.next_syn();
    assert_eq!(syn.from, connection.board_port + 1, "a new connection");
    assert_eq!(of(&network, TcpControl::Fin).count(), 0);
}

/// In safe mode misses still go to the controller on what is left of the connection.
#[test]
fn q16_safe_mode_writes_to_a_half_closed_connection() {
    for (fail_state, told) in [(FailState::Safe, true), (FailState::Secure, false)] {
        let (mut network, mut connection) = established(Config {
            fail_state,
            ..quiet_config()
        });
        assert!(miss(&mut network, &mut connection));
        finish(&mut network, &mut connection);
        assert_eq!(miss(&mut network, &mut connection), told);
    }
}

/// While a SYN is pending they are queued and precede the HELLO, which makes a second buffer: quirk 14.
#[test]
fn q16_what_is_written_to_a_pending_connection_precedes_hello() {
    let (mut network, mut connection) = established(Config {
        fail_state: FailState::Safe,
        ..quiet_config()
    });
    finish(&mut network, &mut connection);
    let syn = network.next_syn();
    let now = network.bed.now;
    network.bed.board.frame(now, port(1), &udp(64, 0));
    network.wait(Duration::from_millis(4));
    network.segments.clear();
    network.accept(&syn);
    let first = &network.segments[0];
    assert_eq!((first.payload[1], first.payload.len()), (10, 18 + 60));
    assert_eq!(first.missing, HELLO.len());
}

#[test]
fn q17_unanswered_attempts_stay_behind() {
    let mut network = network(quiet_config());
    network.wait(Duration::from_millis(9_000));
    let syns: Vec<_> = of(&network, TcpControl::Syn).collect();
    let attempts: Vec<_> = [0, 1, 2]
        .map(|number| {
            let own = syns.iter().filter(|syn| syn.from == 49_153 + number);
            own.map(|syn| syn.at.as_nanos() / 1_000_000_000)
                .collect::<Vec<_>>()
        })
        .into();
    // Every four ticks a new one; each comes again every 3 s.
    assert_eq!(attempts, [vec![2, 5, 8], vec![4, 7], vec![6]]);
}

#[test]
fn q17_a_refused_attempt_leaves_nothing() {
    let mut network = network(quiet_config());
    let syn = network.next_syn();
    let refused = Connection {
        board_port: syn.from,
        next: PEER_INITIAL,
        expected: syn.sequence + 1,
    };
    network.send(&TcpRepr {
        control: TcpControl::Rst,
        ..refused.header()
    });
    network.segments.clear();
    network.wait(Duration::from_millis(5_000));
    assert!(of(&network, TcpControl::Syn).all(|again| again.from != syn.from));
}

/// An attempt that succeeds late resets the session: HELLO comes again, flows and version are gone.
#[test]
fn q17_a_stray_connection_resets_the_session() {
    let mut network = network(quiet_config());
    let stray = network.next_syn();
    let second = network.next_syn();
    let mut session = network.accept(&second);
    assert_eq!(network.read(&mut session), HELLO);
    network.exchange(&mut session, &message(0, &[]));
    let add = FlowMod::add(everything(), 1, output(2)).message();
    network.exchange(&mut session, &add);
    assert_eq!(network.bed.board.flows().len(), 1);

    network.segments.clear();
    let mut stray = network.accept(&stray);
    assert_eq!(network.bed.board.flows().len(), 0);
    assert_eq!(
        network.read(&mut session),
        HELLO,
        "on the running connection"
    );
    assert!(network.read(&mut stray).is_empty());
    assert_eq!(
        network.exchange(&mut session, &message(2, &[])),
        ECHO_REPLY_0
    );
    assert!(!miss(&mut network, &mut session), "frames are dropped");
    network.exchange(&mut session, &message(0, &[]));
    assert!(miss(&mut network, &mut session), "until the next HELLO");
}

/// An attempt that succeeds while a newer one is pending is mute: replies are written to the newer one.
#[test]
fn q17_a_connection_behind_a_newer_attempt_is_mute() {
    let mut network = network(quiet_config());
    let first = network.next_syn();
    let second = network.next_syn();
    let mut mute = network.accept(&first);
    assert!(network.read(&mut mute).is_empty());
    assert!(network.exchange(&mut mute, &message(2, &[])).is_empty());
    network.segments.clear();
    network.accept(&second);
    // HELLO, the reply, and HELLO again share a segment, of which only the first buffer leaves: quirk 14.
    let first = &network.segments[0];
    assert_eq!((first.from, &first.payload[..]), (second.from, &HELLO[..]));
    assert_eq!(first.missing, ECHO_REPLY_0.len() + HELLO.len());
}

/// There is memory for 12 connections: the oldest goes.
#[test]
fn q17_the_oldest_of_twelve_connections_is_aborted() {
    let mut network = network(quiet_config());
    let mut first = None;
    for _ in 0..13 {
        let mut connection = network.connect();
        first.get_or_insert(connection.board_port);
        finish(&mut network, &mut connection);
    }
    let reset: Vec<_> = of(&network, TcpControl::Rst)
        .map(|segment| segment.from)
        .collect();
    assert_eq!(reset, [first.unwrap()]);
}
