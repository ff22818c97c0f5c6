//! Results of a run.

use zodiac_firmware::Counters;

use crate::flow::{FlowCounters, TrafficFlow};
use crate::tcp::{TcpConnection, TcpResult};

/// The records of a run. Instants are nanoseconds since its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// One for each source or transfer over TCP, ordered by flow identifier.
    pub flows: Vec<FlowResult>,
    /// Results of transfers over TCP beyond that, in the order in which they were added.
    pub tcp: Vec<TcpResult>,
    /// One for each board, in the order in which they were added.
    pub boards: Vec<BoardResult>,
    /// Frames that passed the senders' taps, of all flows.
    pub packets: u64,
    /// Frames that reached a host but belong to no flow.
    pub unidentified: u64,
    /// Frames that were on a link when the run ended.
    pub in_flight: u64,
    /// Frames that were on a cable when it was pulled out, or came onto it while it was out.
    pub lost_on_link_down: u64,
    /// Events on the boards, in order of time; at most the first 1000.
    pub events: Vec<RunEvent>,
    /// Events beyond those.
    pub events_omitted: u64,
    /// Messages that the boards lost, or that did something else than they ask, in order of time; at most the first 1000.
    pub deviations: Vec<RunEvent>,
    /// Deviations beyond those.
    pub deviations_omitted: u64,
}

/// The records of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowResult {
    /// The flow's identifier.
    pub flow: u32,
    /// Length of its frames with frame check sequence.
    pub frame_bytes: u64,
    /// Counters of its frames.
    pub counters: FlowCounters,
    /// Beginning of each frame at the sender's tap, by sequence number; empty unless the flow is observed.
    pub sent_ns: Vec<i64>,
    /// Beginning of each frame at the receiver's tap, [`crate::LOST`] if it never arrived; as long as `sent_ns`.
    pub received_ns: Vec<i64>,
}

/// Counters of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardResult {
    /// The board's name.
    pub name: String,
    /// Its own counters.
    pub counters: Counters,
    /// Frames that it sent out of ports without a cable.
    pub unconnected: u64,
}

/// Events of a run as far as they are kept: the first ones; later ones are only counted.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    pub(crate) events: Vec<RunEvent>,
    pub(crate) omitted: u64,
}

impl EventLog {
    const CAPACITY: usize = 1_000;

    pub(crate) fn push(&mut self, event: RunEvent) {
        if self.events.len() < Self::CAPACITY {
            self.events.push(event);
        } else {
            self.omitted += 1;
        }
    }

    /// Returns the kept events in order of time, and the number of those beyond.
    pub(crate) fn finish(mut self) -> (Vec<RunEvent>, u64) {
        self.events.sort_by_key(|event| event.at_ns);
        (self.events, self.omitted)
    }
}

/// Something that went wrong on a board, or a message that it misread; it ends neither board nor run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEvent {
    /// When, since the beginning of the run; negative before it.
    pub at_ns: i64,
    /// The board's name.
    pub board: String,
    /// The fault, where it is, and how to mend it.
    pub text: String,
}

impl FlowResult {
    /// Takes the records out of `flow`.
    pub(crate) fn take(flow: &mut TrafficFlow) -> Self {
        let (sent_ns, received_ns) = flow.take_records();
        Self {
            flow: flow.id,
            frame_bytes: flow.frame_bytes(),
            counters: flow.counters,
            sent_ns,
            received_ns,
        }
    }

    /// Takes the records out of `connection`: one for each segment with data.
    pub(crate) fn of_connection(connection: &mut TcpConnection) -> Self {
        let records = |column: &mut Vec<i64>, observed: bool| {
            let column = std::mem::take(column);
            if observed {
                column
            } else {
                Vec::new()
            }
        };
        Self {
            flow: connection.id,
            frame_bytes: connection.frame_bytes,
            counters: connection.counters,
            sent_ns: records(&mut connection.sent_ns, connection.observed),
            received_ns: records(&mut connection.received_ns, connection.observed),
        }
    }
}
