//! OpenFlow 1.0 agent of switches other than the Zodiac FX: sessions by the specification.
//!
//! As much as forwarding needs: HELLO, ECHO, FEATURES, CONFIG, BARRIER, statistics of entries and table, and all commands of
//! `FLOW_MOD`, with the action output, enqueue where ports have queues, and those that change frames where a switch chip
//! does. Everything else is refused with an error message. Messages take no time, unless the switch has an agent that
//! does ([`agent`]). The matches are those of the firmware crate.

use std::collections::VecDeque;

use zodiac_firmware::MacAddress;

use super::PortSet;
use crate::random::Stream;

pub(crate) mod agent;
mod rewrite;
pub(crate) mod rules;
mod table;

use agent::{AgentProfile, Handover};
use rules::TableModel;
use table::RuleTable;
pub(crate) use table::{Treatment, Verdict};

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 8;
const FLOW_MOD_BYTES: usize = 72;
/// How many bytes of a refused message the error message returns.
const ERROR_DATA_BYTES: usize = 64;

/// Capabilities in `FEATURES_REPLY`: statistics of entries and of the table.
const CAPABILITIES: u32 = 1 | 1 << 1;

/// Types of messages.
mod message {
    pub(super) const HELLO: u8 = 0;
    pub(super) const ERROR: u8 = 1;
    pub(super) const ECHO_REQUEST: u8 = 2;
    pub(super) const ECHO_REPLY: u8 = 3;
    pub(super) const FEATURES_REQUEST: u8 = 5;
    pub(super) const FEATURES_REPLY: u8 = 6;
    pub(super) const GET_CONFIG_REQUEST: u8 = 7;
    pub(super) const GET_CONFIG_REPLY: u8 = 8;
    pub(super) const SET_CONFIG: u8 = 9;
    pub(super) const FLOW_MOD: u8 = 14;
    pub(super) const STATS_REQUEST: u8 = 16;
    pub(super) const STATS_REPLY: u8 = 17;
    pub(super) const BARRIER_REQUEST: u8 = 18;
    pub(super) const BARRIER_REPLY: u8 = 19;
}

/// Types of statistics.
mod statistics {
    pub(super) const FLOW: u16 = 1;
    pub(super) const TABLE: u16 = 3;
    /// More replies follow.
    pub(super) const MORE: u16 = 1;
    /// The request for entries, with its header.
    pub(super) const FLOW_BYTES: usize = 56;
    /// Entries in one reply at most: messages have 64 KB at most.
    pub(super) const REPLY_BYTES: usize = 60_000;
}

/// Type and code of errors about messages.
mod error {
    pub(super) const BAD_VERSION: (u16, u16) = (1, 0);
    pub(super) const BAD_TYPE: (u16, u16) = (1, 1);
    pub(super) const BAD_STAT: (u16, u16) = (1, 2);
    pub(super) const BAD_LENGTH: (u16, u16) = (1, 6);
}

/// Table and agent of one switch.
#[derive(Debug)]
pub(crate) struct OpenFlowAgent {
    mac: [u8; 6],
    ports: u8,
    table: RuleTable,
    switch_config: [u8; 4],
    /// The beginning of a message whose end has not come yet.
    stream: Vec<u8>,
    /// Messages that it has not worked on yet.
    waiting: VecDeque<Vec<u8>>,
    /// When it has worked on the first of them, if it has begun.
    done_ns: Option<u64>,
}

impl OpenFlowAgent {
    /// Creates an agent with an empty table for `entries` entries.
    pub(crate) fn new(mac: MacAddress, ports: u8, entries: usize) -> Self {
        Self::of_table(mac, ports, RuleTable::new(ports, false, entries))
    }

    /// An agent for a switch whose ports have queues, to which entries may `enqueue`.
    pub(crate) fn with_queues(mac: MacAddress, ports: u8, entries: usize) -> Self {
        Self::of_table(mac, ports, RuleTable::new(ports, true, entries))
    }

    /// An agent whose table holds what the model says; entries can also change frames, and reach the chip as the agent's
    /// profile says.
    pub(crate) fn modelled(
        mac: MacAddress,
        ports: u8,
        model: TableModel,
        (profile, random): (AgentProfile, Stream),
    ) -> Self {
        let handover = Handover::new(profile, random);
        Self::of_table(mac, ports, RuleTable::modelled(ports, model, handover))
    }

    fn of_table(mac: MacAddress, ports: u8, table: RuleTable) -> Self {
        Self {
            mac: mac.0,
            ports,
            table,
            switch_config: [0, 0, 0, 128],
            stream: Vec::new(),
            waiting: VecDeque::new(),
            done_ns: None,
        }
    }

    /// Opens the session. Returns HELLO.
    pub(crate) fn connected(&mut self) -> Vec<u8> {
        self.stream.clear();
        self.waiting.clear();
        self.done_ns = None;
        finish(begin(message::HELLO, &[0; 4]))
    }

    /// Takes the messages that `bytes` complete in the stream, and works on them until `now_ns`. Returns the answers,
    /// one for each message that has one.
    pub(crate) fn segment(&mut self, now_ns: u64, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut stream = std::mem::take(&mut self.stream);
        stream.extend_from_slice(bytes);
        let mut rest = &stream[..];
        while rest.len() >= HEADER_BYTES {
            let length = usize::from(be16(rest, 2));
            if length < HEADER_BYTES {
                // Such a length does not tell where the next message begins: the rest is refused as one message.
                self.waiting.push_back(rest.to_vec());
                rest = &[];
                break;
            }
            let Some(message) = rest.get(..length) else {
                break;
            };
            self.waiting.push_back(message.to_vec());
            rest = &rest[length..];
        }
        self.stream = rest.to_vec();
        self.work(now_ns)
    }

    /// Returns when it will have finished its current message.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.done_ns
    }

    /// The answers to the messages that it has worked on by now.
    pub(crate) fn work(&mut self, now_ns: u64) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        let mut begin_ns = now_ns;
        while let Some(message) = self.waiting.front() {
            let done_ns = self
                .done_ns
                .unwrap_or_else(|| begin_ns + self.takes_ns(begin_ns, message));
            if done_ns > now_ns {
                self.done_ns = Some(done_ns);
                break;
            }
            (self.done_ns, begin_ns) = (None, done_ns);
            if let Some(message) = self.waiting.pop_front() {
                answers.extend(self.message(done_ns, &message));
            }
        }
        answers
    }

    /// Returns how long it works on a message.
    fn takes_ns(&self, now_ns: u64, message: &[u8]) -> u64 {
        match message[1] {
            message::FLOW_MOD => self.table.handover().flow_mod_ns(self.table.len()),
            message::BARRIER_REQUEST => self.table.handover().barrier_ns(now_ns),
            _ => 0,
        }
    }

    /// Returns where a frame goes that came in on `port` at this instant.
    pub(crate) fn look_up(&self, now_ns: u64, frame: &[u8], port: u8) -> Verdict {
        self.table.look_up(now_ns, frame, port).verdict
    }

    /// Returns the treatment of a frame that came in on `port` at this instant.
    pub(crate) fn treatment(&self, now_ns: u64, frame: &[u8], port: u8) -> Treatment<'_> {
        self.table.look_up(now_ns, frame, port)
    }

    fn message(&mut self, now_ns: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        if usize::from(be16(bytes, 2)) < HEADER_BYTES {
            return Some(refusal(bytes, error::BAD_LENGTH));
        }
        let (kind, xid) = (bytes[1], &bytes[4..HEADER_BYTES]);
        let answer = match kind {
            message::HELLO | message::ERROR | message::ECHO_REPLY => return None,
            _ if bytes[0] != VERSION => return Some(refusal(bytes, error::BAD_VERSION)),
            message::ECHO_REQUEST => {
                let mut reply = begin(message::ECHO_REPLY, xid);
                reply.extend_from_slice(&bytes[HEADER_BYTES..]);
                reply
            }
            message::FEATURES_REQUEST => self.features(xid),
            message::GET_CONFIG_REQUEST => {
                let mut reply = begin(message::GET_CONFIG_REPLY, xid);
                reply.extend_from_slice(&self.switch_config);
                reply
            }
            message::BARRIER_REQUEST => begin(message::BARRIER_REPLY, xid),
            message::SET_CONFIG if bytes.len() >= 12 => {
                self.switch_config.copy_from_slice(&bytes[8..12]);
                return None;
            }
            message::FLOW_MOD if bytes.len() >= FLOW_MOD_BYTES => {
                return match self.table.flow_mod(now_ns, bytes) {
                    Ok(()) => None,
                    Err(reason) => Some(refusal(bytes, reason.error())),
                };
            }
            message::STATS_REQUEST if bytes.len() >= 12 => return Some(self.statistics(bytes)),
            message::SET_CONFIG | message::FLOW_MOD | message::STATS_REQUEST => {
                return Some(refusal(bytes, error::BAD_LENGTH))
            }
            _ => return Some(refusal(bytes, error::BAD_TYPE)),
        };
        Some(finish(answer))
    }

    /// Returns the replies to a request for statistics, one behind the other.
    fn statistics(&self, request: &[u8]) -> Vec<u8> {
        let kind = be16(request, HEADER_BYTES);
        let reply = |flags: u16, body: &[u8]| {
            let mut reply = begin(message::STATS_REPLY, &request[4..HEADER_BYTES]);
            reply.extend(kind.to_be_bytes());
            reply.extend(flags.to_be_bytes());
            reply.extend(body);
            finish(reply)
        };
        match kind {
            statistics::FLOW if request.len() >= statistics::FLOW_BYTES => {
                let (mut replies, mut body) = (Vec::new(), Vec::new());
                let out_port = be16(request, statistics::FLOW_BYTES - 2);
                for entry in self.table.statistics(&request[12..], out_port) {
                    if body.len() + entry.len() > statistics::REPLY_BYTES {
                        replies.extend(reply(statistics::MORE, &body));
                        body.clear();
                    }
                    body.extend(entry);
                }
                replies.extend(reply(0, &body));
                replies
            }
            statistics::TABLE => {
                let mut body = vec![0; 4];
                let mut name = b"table".to_vec();
                name.resize(32, 0);
                body.extend(name);
                body.extend(0x003f_ffff_u32.to_be_bytes());
                let most = u32::try_from(self.table.most()).unwrap_or(u32::MAX);
                body.extend(most.to_be_bytes());
                body.extend((self.table.len() as u32).to_be_bytes());
                body.extend([0xff; 16]); // look-ups and matches are not counted
                reply(0, &body)
            }
            statistics::FLOW => refusal(request, error::BAD_LENGTH),
            _ => refusal(request, error::BAD_STAT),
        }
    }

    /// `FEATURES_REPLY`: no buffers, one table, the actions, and the ports.
    fn features(&self, xid: &[u8]) -> Vec<u8> {
        let mut reply = begin(message::FEATURES_REPLY, xid);
        reply.extend([0, 0]);
        reply.extend(self.mac);
        reply.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        reply.extend(CAPABILITIES.to_be_bytes());
        reply.extend(self.table.actions().to_be_bytes());
        for port in PortSet::up_to(self.ports).iter() {
            let mut mac = self.mac;
            mac[5] = mac[5].wrapping_add(port);
            let mut name = format!("port{port}").into_bytes();
            name.resize(16, 0);
            reply.extend(u16::from(port).to_be_bytes());
            reply.extend(mac);
            reply.extend(name);
            reply.extend([0; 24]);
        }
        reply
    }
}

fn begin(kind: u8, xid: &[u8]) -> Vec<u8> {
    let mut message = vec![VERSION, kind, 0, 0];
    message.extend_from_slice(xid);
    message
}

/// Fills the length in.
fn finish(mut message: Vec<u8>) -> Vec<u8> {
    let length = (message.len() as u16).to_be_bytes();
    message[2..4].copy_from_slice(&length);
    message
}

/// Returns the error message about `message`, which has at least a header.
fn refusal(message: &[u8], (kind, code): (u16, u16)) -> Vec<u8> {
    let mut error = begin(message::ERROR, &message[4..HEADER_BYTES]);
    error.extend(kind.to_be_bytes());
    error.extend(code.to_be_bytes());
    error.extend_from_slice(&message[..message.len().min(ERROR_DATA_BYTES)]);
    finish(error)
}

/// Two bytes of a message at `at`; the caller has checked the length.
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
pub(crate) mod tests;
