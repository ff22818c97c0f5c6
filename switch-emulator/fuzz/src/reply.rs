//! Checker of the board's messages: they parse to their last byte.

/// Reads a big-endian number at `at`.
fn be16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// Checks a message of the board. `specification`: of one that follows it, whose actions parse, too.
///
/// # Panics
/// When it does not parse.
pub(crate) fn check(message: &[u8], specification: bool) {
    assert!(message.len() >= 8, "no header: {message:02x?}");
    let (version, kind) = (message[0], message[1]);
    assert_eq!(be16(message, 2), message.len(), "length: {message:02x?}");
    assert!(version <= 6, "version: {message:02x?}");
    assert!(
        !specification || matches!(version, 1 | 4),
        "version: {message:02x?}"
    );
    let body = &message[8..];
    let fits = match kind {
        // HELLO, both echoes, barrier reply. The specification's echo carries what was asked.
        0 => body.is_empty() || specification,
        2 | 19 => body.is_empty(),
        3 => specification || body.is_empty(),
        1 => body.len() >= 4,
        6 => body.len() >= 24 && (body.len() - 24) % 48 == 0,
        8 => body.len() == 4,
        10 => body.len() >= 10 && be16(body, 4) == body.len() - 10 && be16(body, 6) <= 0xffff,
        11 => body.len() == 80,
        12 => body.len() == 56,
        17 => statistics(body, specification),
        21 => specification && body.len() >= 8,
        _ => false,
    };
    assert!(fits, "type {kind}: {message:02x?}");
}

/// Checks a message of a board that has spoken OpenFlow 1.3. Its firmware sends replies whose lengths do not fit
/// (quirks 89, 96, 111, 112), so only a message with its own length in the header is known to be one.
///
/// # Panics
/// When such a message is too short for its type, or something is longer than all that the board may write.
pub(crate) fn check_13(message: &[u8]) {
    assert!((1..=4_096).contains(&message.len()), "{message:02x?}");
    if message.len() < 8 || message[0] != 4 || be16(message, 2) != message.len() {
        return;
    }
    let least = match message[1] {
        6 => 32,
        8 => 12,
        10 => 42,
        11 => 56,
        12 => 80,
        19 => 16,
        _ => 8,
    };
    assert!(
        message.len() >= least,
        "type {}: {message:02x?}",
        message[1]
    );
}

/// Checks a message of OpenFlow 1.3 from a board that follows the specification: it parses to its last byte.
///
/// # Panics
/// When it does not.
pub(crate) fn check_spec_13(message: &[u8]) {
    assert!(message.len() >= 8, "no header: {message:02x?}");
    assert_eq!(be16(message, 2), message.len(), "length: {message:02x?}");
    let body = &message[8..];
    let fits = match message[1] {
        0 => body.len() == 8 && body[..4] == [0, 1, 0, 8],
        1 => (4..=68).contains(&body.len()),
        2 | 21 => body.is_empty(),
        3 => true,
        6 | 27 => body.len() == 24,
        8 => body.len() == 4,
        10 => {
            let match_bytes = matched(&body[16..]);
            match_bytes.is_some_and(|length| be16(body, 4) + 16 + length + 2 == body.len())
        }
        11 => matched(&body[40..]).is_some_and(|length| 40 + length == body.len()),
        12 => body.len() == 72,
        19 => multipart(be16(body, 0), &body[8..]),
        23 => body.len() == 8,
        25 => body.len() == 16,
        _ => false,
    };
    assert!(fits, "type {}: {message:02x?}", message[1]);
}

/// Returns the length of the match at the beginning, with what fills it up, if its fields end where it ends.
fn matched(bytes: &[u8]) -> Option<usize> {
    let length = be16(bytes.get(..4)?, 2);
    let mut rest = bytes.get(4..length)?;
    while !rest.is_empty() {
        rest = rest.get(4 + usize::from(*rest.get(3)?)..)?;
    }
    let padded = length.next_multiple_of(8);
    (be16(bytes, 0) == 1 && padded <= bytes.len()).then_some(padded)
}

/// Records that begin with their lengths, each longer than `least`, and of which `fits` holds.
fn records(mut rest: &[u8], at: usize, least: usize, fits: fn(&[u8]) -> bool) -> bool {
    while !rest.is_empty() {
        if rest.len() < least {
            return false;
        }
        let length = be16(rest, at);
        if length < least || length > rest.len() || !fits(&rest[..length]) {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

fn multipart(kind: usize, rest: &[u8]) -> bool {
    let any = |_: &[u8]| true;
    match kind {
        0 => rest.len() == 1_056,
        1 => records(rest, 0, 56, |entry| {
            matched(&entry[48..]).is_some_and(|length| {
                records(&entry[48 + length..], 2, 8, |instruction| {
                    let has_actions = matches!(be16(instruction, 0), 3 | 4);
                    !has_actions || actions(&instruction[8..])
                })
            })
        }),
        2 => rest.len() == 24,
        3 => rest.len() == 240,
        4 => rest.len() % 112 == 0 && rest.len() <= 4 * 112,
        5 => rest.is_empty(),
        6 => records(rest, 0, 40, any),
        7 => records(rest, 0, 8, |group| {
            records(&group[8..], 0, 16, |bucket| actions(&bucket[16..]))
        }),
        8 => rest.len() == 40,
        9 => records(rest, 4, 40, any),
        10 => records(rest, 0, 8, any),
        11 => rest.len() == 16,
        12 => records(rest, 0, 64, any),
        13 => rest.len() % 64 == 0,
        _ => false,
    }
}

fn statistics(body: &[u8], specification: bool) -> bool {
    let (kind, flags, rest) = (be16(body, 0), be16(body, 2), &body[4..]);
    flags == 0
        && match kind {
            0 => rest.len() == 1_056,
            1 => flows(rest, specification),
            2 => specification && rest.len() == 24,
            3 => rest.len() == 64,
            4 => rest.len() % 104 == 0 && rest.len() <= 4 * 104,
            5 => specification && rest.is_empty(),
            _ => false,
        }
}

/// Entries of flow statistics: each begins where the one before ends.
fn flows(mut rest: &[u8], specification: bool) -> bool {
    while !rest.is_empty() {
        if rest.len() < 88 {
            return false;
        }
        let length = be16(rest, 0);
        if length < 88 || length > rest.len() {
            return false;
        }
        if specification && !actions(&rest[88..length]) {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

fn actions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        if rest.len() < 8 {
            return false;
        }
        let length = be16(rest, 2);
        if length < 8 || length % 8 != 0 || length > rest.len() {
            return false;
        }
        rest = &rest[length..];
    }
    true
}
