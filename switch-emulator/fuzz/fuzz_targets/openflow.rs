//! OpenFlow messages and bytes in any segmentation, among frames, pauses, and sessions that begin and end.
#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use zodiac_fuzz::{Script, Start, WatchedBoard};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let Ok(start) = Start::read(&mut input) else {
        return;
    };
    let mut board = WatchedBoard::new(start);
    for step in Script::of_all(input) {
        if board.is_tired() {
            break;
        }
        board.perform(step);
    }
    board.rest();
});
