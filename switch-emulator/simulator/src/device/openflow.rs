//! OpenFlow 1.0 agent of switches other than the Zodiac FX: sessions by the specification.
//!
//! As much as forwarding needs: HELLO, ECHO, FEATURES, CONFIG, BARRIER, `PORT_STATUS` of links, statistics of entries and
//! table, and all commands of `FLOW_MOD`, with the action output, enqueue where ports have queues, and those that change frames where a switch chip
//! does. Everything else is refused with an error message. Messages take no time, unless the switch has an agent that
//! does ([`agent`]). The messages are those of the crate `openflow`.

use std::collections::VecDeque;

use openflow::bytes::{be16, be32};
use openflow::v1_0::{error, flow_mod::FLOW_MOD_BYTES, wildcards};
use openflow::wire::{MessageBuilder, HEADER_BYTES, VERSION_1_0};
use openflow::{message, ErrorCode};
use zodiac_firmware::MacAddress;

use super::PortSet;
use crate::random::Stream;

pub(crate) mod agent;

pub(crate) mod rules;
mod table;

use agent::{AgentProfile, Handover};
use rules::TableModel;
use table::RuleTable;
pub(crate) use table::{Treatment, Verdict};

/// How many bytes of a refused message the error message returns.
const ERROR_DATA_BYTES: usize = 64;

/// Capabilities in `FEATURES_REPLY`: statistics of entries and of the table.
const CAPABILITIES: u32 = 1 | 1 << 1;

/// State of a port without a link (`OFPPS_LINK_DOWN`), and the reason of a `PORT_STATUS` about it (`OFPPR_MODIFY`).
const LINK_DOWN: u32 = 1;
const PORT_MODIFIED: u8 = 2;

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

/// Table and agent of one switch.
#[derive(Debug)]
pub(crate) struct OpenFlowAgent {
    mac: [u8; 6],
    ports: u8,
    /// Ports with a link.
    linked: PortSet,
    /// Whether a controller has ever opened a session.
    has_session: bool,
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
            linked: PortSet::default(),
            has_session: false,
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
        self.has_session = true;
        begin(message::HELLO, 0).finish()
    }

    /// The link of a port came up or went down. Returns `PORT_STATUS` if there is a controller to tell, and news.
    pub(crate) fn link_state(&mut self, port: u8, is_up: bool) -> Option<Vec<u8>> {
        let (before, this) = (self.linked, PortSet::of(port.into()));
        self.linked = before.minus(this);
        if is_up {
            self.linked = self.linked.with(port);
        }
        (self.has_session && self.linked != before).then(|| {
            let status = begin(message::PORT_STATUS, 0)
                .bytes(&[PORT_MODIFIED])
                .zeros(7);
            self.describe(status, port).finish()
        })
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
        let (kind, xid) = (bytes[1], be32(bytes, 4));
        let answer = match kind {
            message::HELLO | message::ERROR | message::ECHO_REPLY => return None,
            _ if bytes[0] != VERSION_1_0 => return Some(refusal(bytes, error::BAD_VERSION)),
            message::ECHO_REQUEST => begin(message::ECHO_REPLY, xid).bytes(&bytes[HEADER_BYTES..]),
            message::FEATURES_REQUEST => self.features(xid),
            message::GET_CONFIG_REQUEST => {
                begin(message::GET_CONFIG_REPLY, xid).bytes(&self.switch_config)
            }
            message::BARRIER_REQUEST => begin(message::BARRIER_REPLY, xid),
            message::SET_CONFIG if bytes.len() >= 12 => {
                self.switch_config.copy_from_slice(&bytes[8..12]);
                return None;
            }
            message::FLOW_MOD if bytes.len() >= FLOW_MOD_BYTES => {
                return match self.table.flow_mod(now_ns, bytes) {
                    Ok(()) => None,
                    Err(error) => Some(refusal(bytes, error)),
                };
            }
            message::STATS_REQUEST if bytes.len() >= 12 => return Some(self.statistics(bytes)),
            message::SET_CONFIG | message::FLOW_MOD | message::STATS_REQUEST => {
                return Some(refusal(bytes, error::BAD_LENGTH))
            }
            _ => return Some(refusal(bytes, error::BAD_TYPE)),
        };
        Some(answer.finish())
    }

    /// Returns the replies to a request for statistics, one behind the other.
    fn statistics(&self, request: &[u8]) -> Vec<u8> {
        let kind = be16(request, HEADER_BYTES);
        let reply = |flags: u16, body: &[u8]| {
            begin(message::STATS_REPLY, be32(request, 4))
                .u16(kind)
                .u16(flags)
                .bytes(body)
                .finish()
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
                let most = u32::try_from(self.table.most()).unwrap_or(u32::MAX);
                begin(message::STATS_REPLY, be32(request, 4))
                    .u16(kind)
                    .u16(0)
                    .zeros(4)
                    .text("table", 32)
                    .u32(wildcards::ALL)
                    .u32(most)
                    .u32(self.table.len() as u32)
                    .bytes(&[0xff; 16]) // look-ups and matches are not counted
                    .finish()
            }
            statistics::FLOW => refusal(request, error::BAD_LENGTH),
            _ => refusal(request, error::BAD_STATISTICS),
        }
    }

    /// `FEATURES_REPLY`: no buffers, one table, the actions, and the ports.
    fn features(&self, xid: u32) -> MessageBuilder {
        let reply = begin(message::FEATURES_REPLY, xid)
            .zeros(2)
            .bytes(&self.mac)
            .bytes(&[0, 0, 0, 0, 1, 0, 0, 0])
            .u32(CAPABILITIES)
            .u32(self.table.actions());
        PortSet::up_to(self.ports)
            .iter()
            .fold(reply, |reply, port| self.describe(reply, port))
    }

    /// Appends the description of a port.
    fn describe(&self, message: MessageBuilder, port: u8) -> MessageBuilder {
        let mut mac = self.mac;
        mac[5] = mac[5].wrapping_add(port);
        let is_up = !self
            .linked
            .intersection(PortSet::of(port.into()))
            .is_empty();
        message
            .u16(port.into())
            .bytes(&mac)
            .text(&format!("port{port}"), 16)
            .zeros(4)
            .u32(if is_up { 0 } else { LINK_DOWN })
            .zeros(16)
    }
}

fn begin(kind: u8, xid: u32) -> MessageBuilder {
    MessageBuilder::new(VERSION_1_0, kind, xid.to_be_bytes())
}

/// Returns the error message about `message`, which has at least a header.
fn refusal(message: &[u8], (kind, code): ErrorCode) -> Vec<u8> {
    begin(message::ERROR, be32(message, 4))
        .u16(kind)
        .u16(code)
        .bytes(&message[..message.len().min(ERROR_DATA_BYTES)])
        .finish()
}

#[cfg(test)]
pub(crate) mod tests;
