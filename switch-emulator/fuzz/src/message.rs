//! OpenFlow messages: well-formed ones of every type, and spoilt ones.

use arbitrary::{Result, Unstructured};

use crate::frame::{self, FLOWS};
use crate::testbed::{everything, fields, message, output, Fields, FlowMod};

/// Port numbers of OpenFlow 1.0 that mean something, and some that do not.
const PORTS: [u16; 16] = [
    1, 2, 3, 4, 0, 5, 8, 257, 0xfff8, 0xfff9, 0xfffa, 0xfffb, 0xfffc, 0xfffd, 0xfffe, 0xffff,
];

/// Returns the bytes of one message, or of something like it.
pub(crate) fn read(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [form, value]: [u8; 2] = input.arbitrary()?;
    Ok(match form % 12 {
        0 => hello(value % 8),
        1 => message(5, &[]),
        2 => message(18, &[]),
        3 | 4 => flow_mod(input, value)?,
        5 => packet_out(input, value)?,
        6 => statistics(input, value)?,
        7 => port_mod(input, value)?,
        8 => message(value % 32, rest(input, 64)?),
        9 => {
            // A length that is not the message's own.
            let mut bytes = message(value % 24, rest(input, 96)?);
            let length: u16 = input.arbitrary()?;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            bytes
        }
        10 => {
            let mut bytes = message([2, 7, 9, 4][usize::from(value % 4)], rest(input, 32)?);
            bytes[0] = input.arbitrary()?;
            bytes
        }
        _ => rest(input, 600)?.to_vec(),
    })
}

/// Returns a HELLO with this version.
pub(crate) fn hello(version: u8) -> Vec<u8> {
    let mut bytes = message(0, &[]);
    bytes[0] = version;
    bytes
}

/// An entry that the firmware takes.
pub(crate) fn valid_entry(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [kind, number, priority, target]: [u8; 4] = input.arbitrary()?;
    let actions: Vec<u8> = (0..target >> 6)
        .flat_map(|offset| output(u16::from((target & 0x3f) + offset) % 4 + 1))
        .collect();
    Ok(FlowMod::add(flow_fields(kind, number), priority.into(), actions).message())
}

fn flow_fields(kind: u8, number: u8) -> [u8; 40] {
    let kind = match kind % 4 {
        0 => Fields::FiveTuple,
        1 => Fields::Port,
        2 => Fields::All,
        _ => return everything(),
    };
    fields(kind, u16::from(number) % FLOWS)
}

fn rest<'a>(input: &mut Unstructured<'a>, most: usize) -> Result<&'a [u8]> {
    let length = usize::from(input.arbitrary::<u16>()?) % (most + 1);
    input.bytes(length.min(input.len()))
}

fn flow_mod(input: &mut Unstructured, number: u8) -> Result<Vec<u8>> {
    let [kind, command, priority, flags, cookie, timeouts]: [u8; 6] = input.arbitrary()?;
    let fields = if kind & 0x1c == 0x1c {
        input.arbitrary()?
    } else {
        flow_fields(kind, number)
    };
    let count = kind >> 5;
    let mut list = Vec::new();
    for _ in 0..count {
        list.extend(action(input)?);
    }
    let mut bytes = FlowMod {
        command: u16::from(command % 6) | u16::from(command & 0x80) << 8,
        fields,
        cookie: cookie.into(),
        priority: u16::from(priority) << (priority % 8),
        flags: flags.into(),
        actions: list,
    }
    .message();
    // Idle and hard timeout, in seconds; out_port.
    bytes[59] = timeouts & 0xf;
    bytes[61] = timeouts >> 4;
    if flags & 0x40 != 0 {
        bytes[68..70].copy_from_slice(&PORTS[usize::from(flags) % PORTS.len()].to_be_bytes());
    }
    Ok(bytes)
}

/// Returns an action: mostly of a type and length that exist.
fn action(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [form, kind]: [u8; 2] = input.arbitrary()?;
    Ok(match form % 8 {
        0..=3 => output(PORTS[usize::from(kind) % PORTS.len()]),
        4 => {
            let body: [u8; 4] = input.arbitrary()?;
            [&u16::from(kind % 13).to_be_bytes()[..], &[0, 8], &body].concat()
        }
        5 => {
            let body: [u8; 12] = input.arbitrary()?;
            [&u16::from(kind % 13).to_be_bytes()[..], &[0, 16], &body].concat()
        }
        6 => {
            let length: u8 = input.arbitrary()?;
            [0, kind % 13, 0, length].to_vec()
        }
        _ => rest(input, 40)?.to_vec(),
    })
}

fn packet_out(input: &mut Unstructured, number: u8) -> Result<Vec<u8>> {
    let in_port = PORTS[usize::from(number) % PORTS.len()];
    let count: u8 = input.arbitrary()?;
    let mut list = Vec::new();
    for _ in 0..count % 4 {
        list.extend(action(input)?);
    }
    let claimed = if count & 0x80 == 0 {
        list.len() as u16
    } else {
        input.arbitrary()?
    };
    let data = if count & 0x40 == 0 {
        frame::read(input)?
    } else {
        Vec::new()
    };
    let body = [
        &[0xff; 4][..],
        &in_port.to_be_bytes(),
        &claimed.to_be_bytes(),
        &list,
        &data,
    ]
    .concat();
    Ok(message(13, &body))
}

fn statistics(input: &mut Unstructured, kind: u8) -> Result<Vec<u8>> {
    let number: u8 = input.arbitrary()?;
    let port = PORTS[usize::from(number) % PORTS.len()];
    let mut body = vec![0, kind % 7, 0, 0];
    match kind % 7 {
        1 | 2 => {
            body.extend(flow_fields(number, number >> 2));
            body.extend([if kind & 0x80 == 0 { 0xff } else { 0 }, 0]);
            body.extend(PORTS[usize::from(kind >> 3) % PORTS.len()].to_be_bytes());
        }
        4 => body.extend([&port.to_be_bytes()[..], &[0; 6]].concat()),
        6 => body = rest(input, 60)?.to_vec(),
        _ => {}
    }
    Ok(message(16, &body))
}

fn port_mod(input: &mut Unstructured, number: u8) -> Result<Vec<u8>> {
    let [config, mask, known]: [u8; 3] = input.arbitrary()?;
    let port = u16::from(number % 6);
    // The address that a board of the specification gives its ports.
    let address = if known & 1 == 0 {
        [
            0x70,
            0xb3,
            0xd5,
            0x6c,
            0x00,
            0x01_u8.wrapping_add(number % 6),
        ]
    } else {
        input.arbitrary()?
    };
    let body = [
        &port.to_be_bytes()[..],
        &address,
        &u32::from(config).to_be_bytes(),
        &u32::from(mask).to_be_bytes(),
        &[0; 8],
    ]
    .concat();
    Ok(message(15, &body))
}
