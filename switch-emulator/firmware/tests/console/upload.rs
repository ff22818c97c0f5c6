//! The firmware upload.

use super::terminal::Terminal;
use zodiac_firmware::OutputKind;

const REFUSE: &str = "\u{15}";
const ACKNOWLEDGE: &str = "\u{6}";

/// A file of two blocks whose last four bytes are the sum of those before.
fn file() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..252).map(|index| index % 251).collect();
    let sum: u32 = bytes.iter().map(|byte| u32::from(*byte)).sum();
    bytes.extend(sum.to_be_bytes());
    bytes
}

fn block(number: u8, data: &[u8]) -> Vec<u8> {
    let sum = data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    [&[1, number, !number], data, &[sum]].concat()
}

fn updating() -> Terminal {
    let mut terminal = Terminal::greeted();
    let text = terminal.keys(b"update\r");
    assert!(
        text.contains("XMODEM") && text.ends_with(REFUSE),
        "{text:?}"
    );
    terminal
}

#[test]
fn a_file_with_the_right_checksum_restarts_the_board() {
    let mut terminal = updating();
    let file = file();
    assert_eq!(terminal.keys(&block(1, &file[..128])), ACKNOWLEDGE);
    let mut damaged = block(2, &file[128..]);
    damaged[10] ^= 1;
    assert_eq!(terminal.keys(&damaged), REFUSE);
    assert_eq!(terminal.keys(&block(1, &file[..128])), ACKNOWLEDGE);
    assert_eq!(terminal.keys(&block(2, &file[128..])), ACKNOWLEDGE);
    let text = terminal.keys(&[4]);
    assert!(text.contains("complete"), "{text:?}");
    assert!(terminal.kinds().contains(&OutputKind::Attach));
}

#[test]
fn everything_else_is_refused() {
    let mut wrong = file();
    wrong[3] ^= 1;
    let mut terminal = updating();
    terminal.keys(&block(1, &wrong[..128]));
    terminal.keys(&block(2, &wrong[128..]));
    let text = terminal.keys(&[4]);
    assert!(
        text.contains("checksum is wrong") && text.ends_with("Zodiac_FX# "),
        "{text:?}"
    );

    assert!(updating()
        .keys(&block(2, &wrong[..128]))
        .contains("a block is missing"));
    assert!(updating().keys(&[0x18]).contains("cancelled"));
    assert!(updating().keys(&[4]).contains("checksum is wrong"));
    let text = updating().wait(120);
    assert!(text.contains("nothing was sent"), "{text:?}");
    assert!(text.matches(REFUSE).count() > 5, "{text:?}");
}
