//! Editing a line.

use super::iteration::ConsoleIteration;

/// Longest line.
const LINE_CHARACTERS: usize = 63;

const ENTER: u8 = b'\r';
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;
const ESCAPE: u8 = 27;

/// Effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Going,
    Entered(String),
}

/// Where in the sequence of a special key the last character was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sequence {
    #[default]
    Outside,
    /// After the escape character.
    Escape,
    /// After the bracket that follows it, or its parameters.
    Bracket,
}

/// A line that is being typed.
#[derive(Debug, Default)]
pub(super) struct LineEditor {
    line: String,
    last: String,
    sequence: Sequence,
}

impl LineEditor {
    /// Handles a character and echoes it. Other than printing ones, Enter, Backspace and Up do nothing.
    pub(super) fn key(&mut self, byte: u8, iteration: &mut ConsoleIteration) -> Edit {
        self.sequence = match (self.sequence, byte) {
            (Sequence::Outside, ESCAPE) => Sequence::Escape,
            (Sequence::Escape, b'[') => Sequence::Bracket,
            (Sequence::Bracket, b' '..=b'?') => return Edit::Going,
            (Sequence::Bracket, b'A') => {
                self.recall(iteration);
                Sequence::Outside
            }
            (Sequence::Outside, byte) => return self.plain(byte, iteration),
            // An unknown special key, or a sequence that is none: Enter is never swallowed.
            (_, ENTER) => {
                self.sequence = Sequence::Outside;
                return self.plain(byte, iteration);
            }
            _ => Sequence::Outside,
        };
        Edit::Going
    }

    fn plain(&mut self, byte: u8, iteration: &mut ConsoleIteration) -> Edit {
        match byte {
            ENTER => {
                let line = std::mem::take(&mut self.line);
                if !line.is_empty() {
                    self.last.clone_from(&line);
                }
                return Edit::Entered(line);
            }
            BACKSPACE | DELETE if self.line.pop().is_some() => {
                iteration.send(&[BACKSPACE, b' ', BACKSPACE]);
            }
            b' '..=b'~' if self.line.len() < LINE_CHARACTERS => {
                self.line.push(char::from(byte));
                iteration.send(&[byte]);
            }
            _ => {}
        }
        Edit::Going
    }

    /// Up: brings the last line back, if nothing is typed yet.
    fn recall(&mut self, iteration: &mut ConsoleIteration) {
        if self.line.is_empty() {
            self.line.clone_from(&self.last);
            iteration.print(&self.line);
        }
    }
}
