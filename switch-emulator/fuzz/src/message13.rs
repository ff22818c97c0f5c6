//! OpenFlow 1.3 messages: well-formed ones of every type, and spoilt ones.

use arbitrary::{Result, Unstructured};

use crate::testbed::message;

/// Port numbers that mean something, and some that do not.
const PORTS: [u32; 14] = [
    1,
    2,
    3,
    4,
    0,
    5,
    257,
    0xffff_fff8,
    0xffff_fff9,
    0xffff_fffa,
    0xffff_fffb,
    0xffff_fffc,
    0xffff_fffd,
    0xffff_ffff,
];
/// Fields with their lengths: those that the firmware knows, and some that it does not.
const FIELDS: [(u8, u8); 24] = [
    (0, 4),
    (2, 8),
    (3, 6),
    (4, 6),
    (5, 2),
    (6, 2),
    (7, 1),
    (8, 1),
    (9, 1),
    (10, 1),
    (11, 4),
    (12, 4),
    (13, 2),
    (14, 2),
    (15, 2),
    (16, 2),
    (19, 1),
    (21, 2),
    (22, 4),
    (26, 16),
    (34, 4),
    (35, 1),
    (36, 1),
    (37, 3),
];
/// Types of messages that are requests.
const KINDS: [u8; 8] = [5, 7, 9, 16, 20, 24, 26, 2];

fn of_13(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = message(kind, body);
    bytes[0] = 4;
    bytes
}

/// Returns a HELLO of OpenFlow 1.3.
pub(crate) fn hello() -> Vec<u8> {
    of_13(0, &[])
}

/// Returns a request for the features.
pub(crate) fn features_request() -> Vec<u8> {
    of_13(5, &[])
}

/// Returns the bytes of one message, or of something like it.
pub(crate) fn read(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [form, value]: [u8; 2] = input.arbitrary()?;
    Ok(match form % 12 {
        0..=3 => flow_mod(input, value)?,
        4 => packet_out(input, value)?,
        5 | 6 => multipart(input, value)?,
        7 => group_mod(input, value)?,
        8 => meter_mod(input, value)?,
        9 => {
            let body = rest(input, 40)?;
            of_13(KINDS[usize::from(value) % KINDS.len()], body)
        }
        10 => {
            // A length that is not the message's own.
            let mut bytes = of_13(value % 32, rest(input, 120)?);
            let length: u16 = input.arbitrary()?;
            bytes[2..4].copy_from_slice(&(length % 640).to_be_bytes());
            bytes
        }
        _ => {
            let mut bytes = hello();
            bytes[0] = value % 8;
            bytes
        }
    })
}

fn rest<'a>(input: &mut Unstructured<'a>, most: usize) -> Result<&'a [u8]> {
    let length = usize::from(input.arbitrary::<u8>()?) % (most + 1);
    input.bytes(length.min(input.len()))
}

fn flow_mod(input: &mut Unstructured, priority: u8) -> Result<Vec<u8>> {
    let [table, command, flags, timeouts, fields, instructions]: [u8; 6] = input.arbitrary()?;
    let mut oxms = Vec::new();
    for _ in 0..fields % 6 {
        oxms.extend(oxm(input)?);
    }
    let length = 4 + oxms.len();
    let mut matched = [&[0, 1], &(length as u16).to_be_bytes()[..], &oxms].concat();
    matched.resize(length.next_multiple_of(8), 0);
    let mut list = Vec::new();
    for _ in 0..instructions % 4 {
        list.extend(instruction(input)?);
    }
    // Mostly for any port and group, as only then something is deleted.
    let any = if flags & 0xc0 == 0xc0 {
        2_u32
    } else {
        u32::MAX
    };
    let table = if table & 0xf0 == 0xf0 {
        table
    } else {
        table % 4
    };
    let command = if command & 0xc0 == 0 { command % 6 } else { 0 };
    let body = [
        &[0; 16][..],
        &[table, command, 0, timeouts & 7, 0, timeouts >> 5],
        &u16::from(priority % 8).to_be_bytes(),
        &u32::MAX.to_be_bytes(),
        &any.to_be_bytes(),
        &u32::MAX.to_be_bytes(),
        &[flags & 6, flags & 1, 0, 0],
        &matched,
        &list,
    ];
    Ok(of_13(14, &body.concat()))
}

fn oxm(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [field, form]: [u8; 2] = input.arbitrary()?;
    let (field, length) = FIELDS[usize::from(field) % FIELDS.len()];
    let masked = form & 3 == 3;
    let length = length * (1 + u8::from(masked));
    let mut bytes = vec![0x80, 0, field << 1 | u8::from(masked), length];
    let value = input.bytes(usize::from(length).min(input.len()))?;
    bytes.extend(value);
    bytes.resize(4 + usize::from(length), 0);
    if form == 0xff {
        bytes[3] = bytes[3].wrapping_add(3);
    }
    Ok(bytes)
}

fn instruction(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [kind, value]: [u8; 2] = input.arbitrary()?;
    Ok(match kind % 8 {
        0 | 1 => vec![0, 1, 0, 8, value % 11, 0, 0, 0],
        2 => vec![0, 6, 0, 8, 0, 0, 0, value % 4],
        3..=5 => {
            let mut actions = Vec::new();
            for _ in 0..value % 5 {
                actions.extend(action(input)?);
            }
            let length = 8 + actions.len() as u16;
            [&[0, 4], &length.to_be_bytes()[..], &[0; 4], &actions].concat()
        }
        6 => vec![0, value % 9, 0, 8, 0, 0, 0, 0],
        _ => rest(input, 16)?.to_vec(),
    })
}

fn action(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [kind, value]: [u8; 2] = input.arbitrary()?;
    Ok(match kind % 16 {
        0..=4 => {
            let port = PORTS[usize::from(value) % PORTS.len()];
            let most = u16::from(value) << 4;
            [
                &[0, 0, 0, 16][..],
                &port.to_be_bytes(),
                &most.to_be_bytes(),
                &[0; 6],
            ]
            .concat()
        }
        5..=8 => {
            let mut bytes = vec![0, 25, 0, 16];
            bytes.extend(oxm(input)?);
            bytes.resize(16, 0);
            bytes
        }
        9 => vec![0, 17, 0, 8, 0x81, value & 1, 0, 0],
        10 => vec![0, 18, 0, 8, 0, 0, 0, 0],
        11 => vec![0, 19, 0, 8, 0x88, 0x47 + (value & 1), 0, 0],
        12 => vec![0, 20, 0, 8, 0x08, 0, 0, 0],
        13 => vec![0, 22, 0, 8, 0, 0, 0, value % 6],
        14 => vec![0, 15, 0, 8, value, 0, 0, 0],
        _ => vec![
            0,
            value % 28,
            0,
            if value > 250 { 0 } else { 8 },
            0,
            0,
            0,
            0,
        ],
    })
}

fn packet_out(input: &mut Unstructured, in_port: u8) -> Result<Vec<u8>> {
    let actions = action(input)?;
    let frame = rest(input, 200)?;
    let body = [
        &u32::MAX.to_be_bytes()[..],
        &u32::from(in_port % 6).to_be_bytes(),
        &(actions.len() as u16).to_be_bytes(),
        &[0; 6],
        &actions,
        frame,
    ];
    Ok(of_13(13, &body.concat()))
}

fn multipart(input: &mut Unstructured, kind: u8) -> Result<Vec<u8>> {
    let wanted: u8 = input.arbitrary()?;
    let wanted = if wanted & 1 == 0 {
        u32::MAX
    } else {
        u32::from(wanted >> 1) % 10
    };
    let body = [
        &[0, kind % 15, 0, 0, 0, 0, 0, 0][..],
        &wanted.to_be_bytes(),
        &[0; 4],
    ];
    Ok(of_13(18, &body.concat()))
}

fn group_mod(input: &mut Unstructured, id: u8) -> Result<Vec<u8>> {
    let [command, kind]: [u8; 2] = input.arbitrary()?;
    let mut actions = Vec::new();
    for _ in 0..kind >> 6 {
        actions.extend(action(input)?);
    }
    let length = 16 + actions.len() as u16;
    let bucket = [&length.to_be_bytes()[..], &[0; 14], &actions].concat();
    let body = [
        &[0, command % 4, kind % 4, 0, 0, 0, 0, id % 6][..],
        if kind & 0x20 == 0 { &bucket } else { &[] },
    ];
    Ok(of_13(15, &body.concat()))
}

fn meter_mod(input: &mut Unstructured, id: u8) -> Result<Vec<u8>> {
    let [command, flags]: [u8; 2] = input.arbitrary()?;
    let mut body = vec![0, command % 4, 0, flags % 4, 0, 0, 0, id % 10];
    for _ in 0..flags >> 5 {
        let [kind, rate]: [u8; 2] = input.arbitrary()?;
        body.extend([0, kind % 4, 0, 16, 0, 0, 0, rate, 0, 0, 0, 0, kind, 0, 0, 0]);
    }
    Ok(of_13(29, &body))
}
