//! Events that the board reports beside frames and bytes.

mod cause;
mod refusal;

use std::fmt;

use serde::Serialize;

use crate::quirks::Quirks;
pub use cause::Cause;

/// Why the board has stopped for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hang {
    /// An instruction of length 0, or of a type that the firmware takes for a place in memory.
    Instruction,
    /// An action of length 0, or a list of actions that is longer than what was sent.
    Action,
    /// Flow statistics of an entry whose `FLOW_MOD` was shorter than its match.
    ShortFlowMod,
    /// Flow statistics of OpenFlow 1.0 over entries of OpenFlow 1.3.
    ForeignEntries,
}

/// Something went wrong. Its `Display` says what, where, and how to mend it; it never ends the emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An OpenFlow message runs past the end of its TCP segment: it and the rest of the segment are lost,
    /// because the firmware does not put segments together.
    MessageSplit {
        /// Type byte of the message.
        message_type: u8,
        /// Length in its header.
        length_bytes: u16,
        /// Bytes left in the segment.
        available_bytes: u16,
    },
    /// Bytes that are no OpenFlow header: the rest of the segment is lost.
    HeaderRefused {
        /// Offset in the segment.
        offset_bytes: u16,
        /// Version byte.
        version: u8,
        /// Type byte.
        message_type: u8,
        /// Length in the header.
        length_bytes: u16,
    },
    /// The controller's HELLO names no version that the board speaks.
    VersionUnusable {
        /// Version byte of the HELLO.
        version: u8,
    },
    /// The board has been switched on with `openflow_version = 4`.
    NewerVersionForced,
    /// The session speaks OpenFlow 1.3, as the board would. This emulated one does not: its profile has no costs for it.
    NewerVersionNegotiated {
        /// Version byte of the controller's HELLO.
        version: u8,
        /// Whether `openflow_version` is 4; otherwise the controller asked for it.
        forced: bool,
    },
    /// No `FEATURES_REQUEST` was understood in time, because the session speaks OpenFlow 1.3: connection closed.
    NewerVersionClosed,
    /// A message was refused with an error message.
    MessageRefused {
        /// Version of the error message.
        version: u8,
        /// Type byte of the message.
        message_type: u8,
        /// OpenFlow error type.
        error_type: u16,
        /// OpenFlow error code.
        error_code: u16,
        /// Who refuses it.
        quirks: Quirks,
    },
    /// A message was lost, or did something else than it asks.
    MessageMisread {
        /// Version of the session.
        version: u8,
        /// Type byte of the message.
        message_type: u8,
        /// Why.
        cause: Cause,
    },
    /// The controller sent no `FEATURES_REQUEST` in time: connection closed.
    NoFeaturesRequest,
    /// Nothing came from the controller for too long: connection closed.
    ControllerSilent,
    /// The reply to a flow statistics request overran its 2048 bytes: the board hangs until power-cycled.
    StatsReplyOverrun {
        /// Length that the reply would have had.
        length_bytes: u16,
    },
    /// Quirk 14 or 15: a reply was appended behind one without room; the frame that carries both is sent truncated, and
    /// nothing more reaches the controller on this connection.
    ReplyTruncated {
        /// Payload that the frame should carry.
        segment_bytes: u16,
        /// Payload that it does carry.
        sent_bytes: u16,
    },
    /// Quirk 70: a message for the controller was lost because the send buffer was full. Said once until there is room.
    SendBufferFull {
        /// Type byte of the message.
        message_type: u8,
        /// Whether the connection is stalled anyway.
        stalled: bool,
    },
    /// Quirk 192: a message for the controller was lost because the heap of the IP stack was full. Said once until there is
    /// room.
    ReplyHeapFull {
        /// Type byte of the message.
        message_type: u8,
    },
    /// Quirks 51 and 52: an entry has timed out, by its memory address and not by its timeouts.
    FlowExpired {
        /// Age of the entry.
        age_s: u32,
        /// Whether another entry vanished with it; otherwise the count of entries is -1 now.
        another_lost: bool,
    },
    /// Quirk 52: an entry was added while the count was -1. The board writes outside of its tables.
    AddAfterUnderflow,
    /// Quirks 18, 29 and 93: a request of a kind that the firmware does not know gets no reply.
    RequestIgnored {
        /// Version of the session.
        version: u8,
        /// Type byte of the message.
        message_type: u8,
        /// Kind of statistics, if it asked for some.
        statistics: Option<u16>,
    },
    /// Quirk 46: a DELETE has moved entries into gaps, where they lost their actions: their frames are dropped.
    EntriesLostActions {
        /// How many.
        entries: u16,
    },
    /// OpenFlow 1.3, quirks 118 and 119: a `FLOW_MOD` with this command does nothing.
    FlowModIgnored {
        /// Command of the message.
        command: u8,
    },
    /// OpenFlow 1.3, quirk 100: a multipart request of a type that the firmware does not know gets no reply.
    MultipartIgnored {
        /// Type of the request.
        kind: u16,
    },
    /// OpenFlow 1.3, quirk 86: the multipart replies of a segment were lost.
    MultipartLost,
    /// OpenFlow 1.3, quirk 85: the version has changed while there were entries of the other one.
    ForeignEntries {
        /// How many.
        entries: u16,
    },
    /// OpenFlow 1.3: the board hangs until power-cycled.
    BoardHung {
        /// Why.
        cause: Hang,
    },
    /// Quirk 61: a frame of a kind that the firmware does not look for in its table found entries there. Said once.
    FrameUnmatchable {
        /// Its type, behind VLAN tags.
        ethertype: u16,
    },
    /// A frame that no Ethernet port would have received was ignored.
    FrameMalformed {
        /// Its length without FCS.
        length_bytes: u32,
    },
    /// A frame came in on a port that is not an OpenFlow port, on a board whose driver keeps the session, and the integrated
    /// switch had no other port for it. Said once a port.
    PortNotOpenFlow {
        /// Number of the port.
        port: u8,
    },
}

impl Event {
    /// Returns whether nothing is broken, but a message was lost or did something else than it asks.
    #[must_use]
    pub const fn is_deviation(&self) -> bool {
        matches!(self, Self::MessageMisread { .. })
    }

    /// Formats events of the session's version and of the memory for its replies.
    fn of_session(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewerVersionForced => f.write_str(
                "openflow_version = 4: the board speaks OpenFlow 1.3 with every controller, and this emulated \
                 board does not (1.3 needs cpu.openflow13 in the profile): only ECHO is answered and each session ends after 3 s; set it to 0, or to 1 for a controller that \
                 speaks OpenFlow 1.0",
            ),
            Self::NewerVersionNegotiated { version, forced } => write!(
                f,
                "the session speaks OpenFlow 1.3 (the controller's HELLO has wire version {version}{}), which this emulated \
                 board does not (it needs cpu.openflow13 in the profile): only ECHO is answered, and \
                 the board closes the session after 3 s, again and again. {} A controller that speaks 1.3 only, such as \
                 Faucet, cannot drive it",
                if forced { ", openflow_version is 4" } else { "" },
                if forced {
                    "Set openflow_version = 1 if the controller speaks OpenFlow 1.0."
                } else {
                    "If the controller speaks OpenFlow 1.0 too, let it begin with that, or set openflow_version = 1."
                }
            ),
            Self::NewerVersionClosed => f.write_str(
                "connection closed after 3 s: the session speaks OpenFlow 1.3, which this emulated board does not, so \
                 whatever the controller asked for, features included, was not understood",
            ),
            Self::ReplyHeapFull { message_type } => write!(
                f,
                "message of type {message_type} to the controller lost: replies that wait for acknowledgement fill the \
                 6 KB that the board has for all of them; wait for the reply to a request before the next one (quirk 192)"
            ),
            _ => Ok(()),
        }
    }

    /// Why a message was refused, lost or changed.
    fn of_message(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessageRefused {
                version,
                message_type,
                error_type,
                error_code,
                quirks,
            } => {
                write!(
                    f,
                    "message of type {message_type} refused with error {error_type}/{error_code}"
                )?;
                let error = (error_type, error_code);
                let by_firmware = refusal::of_firmware(version, message_type, error);
                match by_firmware.filter(|(quirk, _)| quirks.has(*quirk)) {
                    Some((_, why)) => write!(f, ": {why}"),
                    None => match refusal::name(version, error_type, error_code) {
                        Some((kind, code)) => write!(f, ", {kind}, {code}"),
                        None => Ok(()),
                    },
                }
            }
            Self::MessageMisread {
                version,
                message_type,
                cause,
            } => {
                write!(f, "message of type {message_type}: ")?;
                cause.write(version, f)
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Event {
    #[allow(clippy::too_many_lines)] // a text for each
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MessageSplit { message_type, length_bytes, available_bytes } => write!(
                f,
                "OpenFlow message of type {message_type} with {length_bytes} bytes was split: its TCP segment held \
                 {available_bytes}; the firmware does not reassemble, so it and what follows is lost; keep each \
                 message and each write within 536 bytes (quirks 10, 11)"
            ),
            Self::HeaderRefused { offset_bytes, version, message_type, length_bytes } => write!(
                f,
                "no OpenFlow header at byte {offset_bytes} of a TCP segment (version {version}, type {message_type}, \
                 length {length_bytes}): the rest of the segment is lost; let each segment begin with a message (quirks 12, 13)"
            ),
            Self::VersionUnusable { version } => write!(
                f,
                "the controller's HELLO has wire version {version}, and no version that this board speaks comes of it; let the \
                 controller speak OpenFlow 1.0 (wire version 1) or set openflow_version = 1; 1.3 needs cpu.openflow13 in the \
                 profile (quirk 2)"
            ),
            Self::NewerVersionForced
            | Self::NewerVersionNegotiated { .. }
            | Self::NewerVersionClosed
            | Self::ReplyHeapFull { .. } => self.of_session(f),
            Self::MessageRefused { .. } | Self::MessageMisread { .. } => self.of_message(f),
            Self::NoFeaturesRequest => {
                f.write_str("connection closed: no FEATURES_REQUEST within 3 s; let the controller send one after HELLO (quirk 8)")
            }
            Self::ControllerSilent => f.write_str(
                "connection closed: nothing came from the controller for 6 s; let it answer echo requests, or set \
                 ofchecks = false (quirk 7)",
            ),
            Self::StatsReplyOverrun { length_bytes } => write!(
                f,
                "the board hangs: a flow statistics reply of {length_bytes} bytes overran its 2048 bytes; ask for \
                 flow statistics with fewer entries or actions, and start the board again (quirk 28)"
            ),
            Self::ReplyTruncated { segment_bytes, sent_bytes } => write!(
                f,
                "the control connection is stalled: of {segment_bytes} bytes for the controller the board sent \
                 {sent_bytes} in a frame that the receiver discards, again and again; have at most one reply to each \
                 segment, or a BARRIER_REQUEST first, and reconnect (quirks 14, 15)"
            ),
            Self::SendBufferFull { message_type, stalled } => write!(
                f,
                "message of type {message_type} to the controller lost: {} (quirk 70)",
                if stalled {
                    "the control connection is stalled; reconnect"
                } else {
                    "24 messages or 3216 bytes wait for acknowledgement already; install flows before the traffic comes"
                }
            ),
            Self::FlowExpired { age_s, another_lost } => write!(
                f,
                "an entry has timed out after {age_s} s, whatever its timeouts, {}; install the flows again every few \
                 minutes (quirks 51, 52)",
                if another_lost {
                    "and the last one has vanished with it"
                } else {
                    "and as it was the only one all frames are dropped from now on"
                }
            ),
            Self::RequestIgnored { version, message_type, statistics: None } => write!(
                f,
                "message of type {message_type} is ignored: the firmware does not know it; expect no reply (quirk {})",
                if version == 4 { 93 } else { 18 }
            ),
            Self::RequestIgnored { statistics: Some(kind), .. } => write!(
                f,
                "the request for statistics of type {kind} is ignored: the firmware knows types 0, 1, 3 and 4; expect \
                 no reply (quirk 29)"
            ),
            Self::EntriesLostActions { entries } => write!(
                f,
                "a DELETE has left {entries} entries without actions, whose frames are dropped from now on: it removed \
                 entries before the last one; delete all flows or use DELETE_STRICT with the cookie (quirk 46)"
            ),
            Self::AddAfterUnderflow => f.write_str(
                "an entry was added to a table with -1 entries: it is lost, and the board has overwritten memory in \
                 front of its tables; start the board again (quirk 52)",
            ),
            Self::FlowModIgnored { command } => write!(
                f,
                "FLOW_MOD with command {command} does nothing: the firmware knows ADD, DELETE and DELETE_STRICT in OpenFlow \
                 1.3; add the entry again with the same match and priority instead (quirks 118, 119)"
            ),
            Self::MultipartIgnored { kind } => write!(
                f,
                "multipart request of type {kind} is ignored: the firmware does not know it; expect no reply (quirk 100)"
            ),
            Self::MultipartLost => f.write_str(
                "multipart replies lost: their TCP segment ended with ECHO_REQUEST, HELLO, or with what is no whole message; \
                 send multipart requests in a segment of their own (quirk 86)",
            ),
            Self::ForeignEntries { entries } => write!(
                f,
                "the OpenFlow version has changed while {entries} entries of the other one are installed: they match no frame, \
                 and flow statistics of OpenFlow 1.0 hang the board; clear the flows first (quirk 85)"
            ),
            Self::BoardHung { cause } => write!(
                f,
                "the board hangs: {}; start it again",
                match cause {
                    Hang::Instruction => "a frame has hit an entry with an instruction of length 0 or of a type from 32768 on; send whole instructions (quirks 154, 155)",
                    Hang::Action => "a frame has hit an action of length 0, or a list of actions longer than its message; send whole actions (quirk 154)",
                    Hang::ShortFlowMod => "flow statistics of an entry whose FLOW_MOD was shorter than its match; send whole messages (quirk 139)",
                    Hang::ForeignEntries => "flow statistics of OpenFlow 1.0 over entries of 1.3; clear the flows before the version changes (quirk 85)",
                }
            ),
            Self::FrameUnmatchable { ethertype } => write!(
                f,
                "a frame of type 0x{ethertype:04x}{} goes to the controller whatever the entries say: only ARP, and TCP, UDP and \
                 ICMP over IPv4, can match one; send one of these, or set quirks = \"spec\" (quirk 61); said once",
                if ethertype == 0x0800 { " with another protocol than TCP, UDP and ICMP" } else { "" }
            ),
            Self::FrameMalformed { length_bytes } => write!(
                f,
                "frame of {length_bytes} bytes (without FCS) ignored: a port receives 14 to 1531 bytes"
            ),
            Self::PortNotOpenFlow { port } => write!(
                f,
                "frames on port {port} are ignored: it is not in openflow_ports, and no other port of its VLAN takes them; management \
                 traffic needs control = \"network\""
            ),
        }
    }
}

/// Counters of frames since power-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames that came in on a port.
    pub received: u64,
    /// Frames that left; one that leaves by several ports counts once for each.
    pub forwarded: u64,
    /// Lost because the receive ring had too few free units.
    pub dropped_buffer: u64,
    /// Lost in the integrated switch on the way in, because the link to the CPU, or another front port, was behind by more
    /// than its buffer, or the CPU paused.
    pub dropped_switch: u64,
    /// Lost in the integrated switch on the way back from the CPU, because frames for the paused CPU took up the room.
    pub dropped_return: u64,
    /// Pauses that the CPU's MAC asked the integrated switch for.
    pub pauses_sent: u64,
    /// Pause frames that came in on a port. They end in the integrated switch.
    pub pauses_received: u64,
    /// Lost because all descriptors for sending were in use.
    pub dropped_transmit: u64,
    /// Dropped because no controller session allowed forwarding, by the EtherType filter, or because the integrated switch
    /// had no port for it.
    pub dropped_policy: u64,
    /// Dropped because too long or too short for the hardware, on the way in or out.
    pub dropped_size: u64,
    /// Matched an entry that sent them nowhere.
    pub dropped_flow: u64,
    /// Matched no entry; sent to the controller.
    pub missed: u64,
    /// Frames that the CPU took from the ring.
    pub processed: u64,
    /// Frames for which the flow table was searched.
    pub searches: u64,
    /// Entries that were compared with frames, in all searches.
    pub entries_examined: u64,
    /// Frames that the integrated switch bridged from port to port. Broadcasts of native ports may go to the IP stack
    /// as well.
    pub bridged: u64,
    /// Frames that came in on native ports of a board with an IP stack; not among those received.
    pub native_received: u64,
    /// Frames that the board's IP stack sent; not among those forwarded.
    pub native_sent: u64,
    /// Most units of the receive ring that were in use at once.
    pub ring_units_peak: u64,
}

impl Counters {
    /// Counts a frame that 1.3 sends nowhere, after a miss or by its entries.
    pub(crate) fn unsent(&mut self, missed: bool) {
        if missed {
            self.missed += 1;
        } else {
            self.dropped_flow += 1;
        }
    }
}

/// Counts `more`. What is counted here does not reach 2^64 while anybody watches, so nothing checks for it.
#[inline(always)]
pub(crate) fn count(counter: &mut u64, more: u64) {
    *counter = counter.wrapping_add(more);
}
