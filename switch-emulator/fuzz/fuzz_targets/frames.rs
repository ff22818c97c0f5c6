//! Frames of any length and contents, at any instant, through a board whose table valid messages have filled.
#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use zodiac_fuzz::{install, Script, Start, WatchedBoard};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let Ok(start) = Start::read(&mut input) else {
        return;
    };
    let mut board = WatchedBoard::new(start);
    if install(&mut board, &mut input).is_err() {
        return;
    }
    for step in Script::of_frames(input) {
        if board.is_tired() {
            break;
        }
        board.perform(step);
    }
    board.rest();
});
