//! The OpenFlow 1.0 side of switches that are no Zodiac FX: sessions as the specification describes them.
//!
//! As much as forwarding needs: HELLO, ECHO, FEATURES, CONFIG, BARRIER and all commands of `FLOW_MOD`, with the
//! action output, enqueue where ports have queues, and those that change frames where a switch chip does. Everything else is refused with an error message. Nothing here takes time: what a controller's
//! message costs on these switches is not known. The matches are those of the firmware crate.

use zodiac_firmware::MacAddress;

use super::Ports;

mod rewrite;
pub(crate) mod rules;
mod table;

use rules::TableModel;
use table::Table;
pub(crate) use table::{Treatment, Verdict};

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 8;
const FLOW_MOD_BYTES: usize = 72;
/// As much of a message as an error message returns.
const ERROR_DATA_BYTES: usize = 64;

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
    pub(super) const BARRIER_REQUEST: u8 = 18;
    pub(super) const BARRIER_REPLY: u8 = 19;
}

/// Type and code of errors about messages.
mod error {
    pub(super) const BAD_VERSION: (u16, u16) = (1, 0);
    pub(super) const BAD_TYPE: (u16, u16) = (1, 1);
    pub(super) const BAD_LENGTH: (u16, u16) = (1, 6);
}

/// Table and agent of one switch.
#[derive(Debug)]
pub(crate) struct Agent {
    mac: [u8; 6],
    ports: u8,
    table: Table,
    switch_config: [u8; 4],
    /// The beginning of a message whose end has not come yet.
    stream: Vec<u8>,
}

impl Agent {
    /// An agent with an empty table for `entries` entries.
    pub(crate) fn new(mac: MacAddress, ports: u8, entries: usize) -> Self {
        Self::of_table(mac, ports, Table::new(ports, false, entries))
    }

    /// The same for a switch whose ports have queues, to which entries may `enqueue`.
    pub(crate) fn with_queues(mac: MacAddress, ports: u8, entries: usize) -> Self {
        Self::of_table(mac, ports, Table::new(ports, true, entries))
    }

    /// The same with a table that holds what the model says, and whose entries can change frames too.
    pub(crate) fn modelled(mac: MacAddress, ports: u8, model: TableModel) -> Self {
        Self::of_table(mac, ports, Table::modelled(ports, model))
    }

    fn of_table(mac: MacAddress, ports: u8, table: Table) -> Self {
        Self {
            mac: mac.0,
            ports,
            table,
            switch_config: [0, 0, 0, 128],
            stream: Vec::new(),
        }
    }

    /// What the switch says when the session opens.
    pub(crate) fn connected(&mut self) -> Vec<u8> {
        self.stream.clear();
        finish(begin(message::HELLO, &[0; 4]))
    }

    /// Handles what the stream holds completely after `bytes`; gives the answers, one for each message that has one.
    pub(crate) fn segment(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut stream = std::mem::take(&mut self.stream);
        stream.extend_from_slice(bytes);
        let mut answers = Vec::new();
        let mut rest = &stream[..];
        while rest.len() >= HEADER_BYTES {
            let length = usize::from(be16(rest, 2));
            if length < HEADER_BYTES {
                // Where the next message begins is unknown.
                answers.push(refusal(rest, error::BAD_LENGTH));
                rest = &[];
                break;
            }
            let Some(message) = rest.get(..length) else {
                break;
            };
            answers.extend(self.message(message));
            rest = &rest[length..];
        }
        self.stream = rest.to_vec();
        answers
    }

    /// Where a frame goes that came in on `port`.
    pub(crate) fn look_up(&self, frame: &[u8], port: u8) -> Verdict {
        self.table.look_up(frame, port).verdict
    }

    /// What becomes of a frame that came in on `port`.
    pub(crate) fn treatment(&self, frame: &[u8], port: u8) -> Treatment<'_> {
        self.table.look_up(frame, port)
    }

    fn message(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
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
                return match self.table.flow_mod(bytes) {
                    Ok(()) => None,
                    Err(reason) => Some(refusal(bytes, reason.error())),
                };
            }
            message::SET_CONFIG | message::FLOW_MOD => {
                return Some(refusal(bytes, error::BAD_LENGTH))
            }
            _ => return Some(refusal(bytes, error::BAD_TYPE)),
        };
        Some(finish(answer))
    }

    /// `FEATURES_REPLY`: no buffers, one table, the actions, and the ports.
    fn features(&self, xid: &[u8]) -> Vec<u8> {
        let mut reply = begin(message::FEATURES_REPLY, xid);
        reply.extend([0, 0]);
        reply.extend(self.mac);
        reply.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        reply.extend(0_u32.to_be_bytes());
        reply.extend(self.table.actions().to_be_bytes());
        for port in Ports::up_to(self.ports).iter() {
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

/// The error message about `message`, which has at least a header.
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
