//! Shared code of the fuzz targets: decodes bytes into a driver's calls, and checks invariants after each.
//!
//! An input is read from front to back: first a [`Start`] (settings of the board), then [`Step`]s until it ends. So
//! libFuzzer's edits (insert, erase, copy a range) insert, erase and copy steps.
#![forbid(unsafe_code)]

mod frame;
mod message;
mod message13;
mod reply;
mod start;
mod step;
mod typing;
mod watched;

// Frames and messages as the firmware's own tests make them.
#[path = "../../firmware/tests/testbed/mod.rs"]
mod testbed;

use arbitrary::{Result, Unstructured};

pub use start::Start;
pub use step::{Step, StepSet};
pub use watched::WatchedBoard;

/// Does with a board what an input says.
///
/// # Panics
/// When something does not hold that must hold in every state.
pub fn run(bytes: &[u8], steps: StepSet) {
    let mut input = Unstructured::new(bytes);
    let Ok(start) = Start::read(&mut input) else {
        return;
    };
    let mut board = WatchedBoard::new(start);
    if steps == StepSet::OpenFlow13 {
        board.handshake_13();
    }
    if steps == StepSet::Frames && install(&mut board, &mut input).is_err() {
        return;
    }
    while !input.is_empty() && !board.is_tired() {
        match Step::read(&mut input, steps) {
            Ok(step) => board.perform(step),
            Err(_) => break,
        }
    }
    board.rest();
}

/// Installs up to 31 entries that the firmware takes; their count and themselves are the next bytes of the input.
fn install(board: &mut WatchedBoard, input: &mut Unstructured) -> Result<()> {
    board.handshake();
    for _ in 0..input.arbitrary::<u8>()? % 32 {
        board.exchange(&message::valid_entry(input)?);
    }
    Ok(())
}
