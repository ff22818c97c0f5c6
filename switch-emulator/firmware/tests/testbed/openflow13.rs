//! Messages of OpenFlow 1.3, and what they are made of.

use super::message;

pub const MULTIPART: u8 = 18;
pub const GROUP_MOD: u8 = 15;
pub const METER_MOD: u8 = 29;
pub const ADD: u8 = 0;
pub const MODIFY: u8 = 1;
pub const DELETE: u8 = 3;
pub const CONTROLLER: u32 = 0xffff_fffd;
pub const ALL: u32 = 0xffff_fffc;
pub const ANY: u32 = u32::MAX;

pub fn of13(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = message(kind, body);
    bytes[0] = 4;
    bytes
}

/// A `FLOW_MOD`.
#[derive(Clone)]
pub struct Flow {
    pub command: u8,
    pub table: u8,
    pub priority: u16,
    pub cookie: u64,
    pub cookie_mask: u64,
    pub timeouts: [u16; 2],
    pub out_port: u32,
    pub flags: u16,
    pub oxms: Vec<u8>,
    pub instructions: Vec<u8>,
}

impl Flow {
    pub fn new(oxms: &[u8], instructions: &[u8]) -> Self {
        Self {
            command: ADD,
            table: 0,
            priority: 1,
            cookie: 0,
            cookie_mask: 0,
            timeouts: [0; 2],
            out_port: ANY,
            flags: 0,
            oxms: oxms.to_vec(),
            instructions: instructions.to_vec(),
        }
    }

    pub fn message(&self) -> Vec<u8> {
        let length = 4 + self.oxms.len();
        let mut fields = [&[0, 1], &(length as u16).to_be_bytes()[..], &self.oxms].concat();
        fields.resize(length.next_multiple_of(8), 0);
        let [idle, hard] = self.timeouts;
        let body = [
            &self.cookie.to_be_bytes()[..],
            &self.cookie_mask.to_be_bytes(),
            &[self.table, self.command],
            &idle.to_be_bytes(),
            &hard.to_be_bytes(),
            &self.priority.to_be_bytes(),
            &ANY.to_be_bytes(),
            &self.out_port.to_be_bytes(),
            &ANY.to_be_bytes(),
            &self.flags.to_be_bytes(),
            &[0; 2],
            &fields,
            &self.instructions,
        ];
        of13(14, &body.concat())
    }
}

/// Returns an instruction with actions: 4 applies them, 3 writes them.
pub fn with_actions(kind: u8, actions: &[Vec<u8>]) -> Vec<u8> {
    let actions = actions.concat();
    let length = 8 + actions.len() as u16;
    [&[0, kind], &length.to_be_bytes()[..], &[0; 4], &actions].concat()
}

pub fn apply(actions: &[Vec<u8>]) -> Vec<u8> {
    with_actions(4, actions)
}

pub fn output(port: u32) -> Vec<u8> {
    [
        &[0, 0, 0, 16][..],
        &port.to_be_bytes(),
        &[0xff, 0xff],
        &[0; 6],
    ]
    .concat()
}

pub fn group(id: u32) -> Vec<u8> {
    [&[0, 22, 0, 8][..], &id.to_be_bytes()].concat()
}

pub fn set_field(oxm: &[u8]) -> Vec<u8> {
    let length = (4 + oxm.len()).next_multiple_of(8);
    let mut action = [&[0, 25], &(length as u16).to_be_bytes()[..], oxm].concat();
    action.resize(length, 0);
    action
}

pub fn goto(table: u8) -> Vec<u8> {
    vec![0, 1, 0, 8, table, 0, 0, 0]
}

pub fn oxm(field: u8, value: &[u8]) -> Vec<u8> {
    [&[0x80, 0, field << 1, value.len() as u8], value].concat()
}

pub fn masked(field: u8, value: &[u8], mask: &[u8]) -> Vec<u8> {
    let length = (value.len() + mask.len()) as u8;
    [&[0x80, 0, field << 1 | 1, length], value, mask].concat()
}

pub fn in_port(number: u8) -> Vec<u8> {
    oxm(0, &[0, 0, 0, number])
}

pub fn ipv4() -> Vec<u8> {
    oxm(5, &[8, 0])
}

pub fn request(kind: u8, body: &[u8]) -> Vec<u8> {
    of13(MULTIPART, &[&[0, kind, 0, 0, 0, 0, 0, 0], body].concat())
}

/// Body of a request for the statistics of all flows.
pub fn all_flows() -> Vec<u8> {
    let mut body = vec![0; 40];
    body[0] = 0xff;
    body[4..12].fill(0xff);
    body[32..36].copy_from_slice(&[0, 1, 0, 4]);
    body
}

pub fn bucket(watched: u32, weight: u16, actions: &[Vec<u8>]) -> Vec<u8> {
    let actions = actions.concat();
    let length = (16 + actions.len()) as u16;
    let head = [
        &length.to_be_bytes()[..],
        &weight.to_be_bytes(),
        &watched.to_be_bytes(),
        &ANY.to_be_bytes(),
        &[0; 4],
    ];
    [&head.concat()[..], &actions].concat()
}

pub fn group_mod(command: u8, kind: u8, id: u32, buckets: &[Vec<u8>]) -> Vec<u8> {
    let head = [&[0, command, kind, 0], &id.to_be_bytes()[..]].concat();
    of13(GROUP_MOD, &[&head[..], &buckets.concat()].concat())
}

/// A `METER_MOD` of the meter 1 with a band that drops what comes at more than `rate`.
pub fn meter_mod(command: u8, flags: u8, rate: u32) -> Vec<u8> {
    let band = [&[0, 1, 0, 16][..], &rate.to_be_bytes(), &[0; 8]].concat();
    let head = [0, command, 0, flags, 0, 0, 0, 1];
    of13(METER_MOD, &[&head, &band[..]].concat())
}

/// The instruction that sends frames through the meter 1.
pub fn metered() -> Vec<u8> {
    vec![0, 6, 0, 8, 0, 0, 0, 1]
}
