//! Steps of a driver, decoded from bytes.

use arbitrary::{Result, Unstructured};
use zodiac_firmware::{Duration, PortNumber};

use crate::{frame, message, message13, typing};

/// Something that a driver does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A frame comes in.
    Frame(PortNumber, Vec<u8>),
    /// The controller writes bytes, which wait until they are sent.
    Write(Vec<u8>),
    /// At most that many of the bytes that wait are sent as one TCP segment.
    Send(usize),
    /// The step before is done again so often, with a pause before each.
    Again(u8, Duration),
    /// Time passes.
    Wait(Duration),
    /// The TCP session is established.
    Connected,
    /// The TCP session has ended.
    Disconnected,
    /// A cable is plugged in or pulled out.
    Link(PortNumber, bool),
    /// One message, sent in a segment of its own after all that waits: what most controllers do.
    Message(Vec<u8>),
    /// A controller connects, negotiates OpenFlow 1.0 and asks for the features.
    Handshake,
    /// Someone types at the serial console.
    Type(Vec<u8>),
}

/// Longest payload of a TCP segment; the fuzzer may go beyond.
const MSS: usize = 536;
/// Longest pause: 2 to the power of 40 ns are 18 minutes, after which flows have timed out.
const LONGEST_EXPONENT: u8 = 40;

/// Which steps an input may make: each kind has those of the one before, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepSet {
    /// Frames, time and cables.
    Frames,
    /// Also what a controller does.
    OpenFlow,
    /// Also messages of OpenFlow 1.3.
    OpenFlow13,
    /// Also what someone types at the serial console.
    Console,
}

impl Step {
    /// Returns the next step of an input.
    ///
    /// # Errors
    /// When the input ends within it.
    pub fn read(input: &mut Unstructured, steps: StepSet) -> Result<Self> {
        let [kind, value]: [u8; 2] = input.arbitrary()?;
        let kind = match steps {
            StepSet::Frames => kind % 8,
            StepSet::OpenFlow | StepSet::OpenFlow13 => kind % 16,
            StepSet::Console => kind % 24,
        };
        Ok(match kind {
            0..=2 => Self::Frame(port(value), frame::read(input)?),
            3 => Self::Wait(Duration::from_nanos(input.arbitrary::<u16>()?.into())),
            4 => Self::Wait(pause(value)),
            5 | 6 => {
                let nanos: u16 = input.arbitrary()?;
                Self::Again(value, Duration::from_nanos(u64::from(nanos) << (value % 4)))
            }
            7 => Self::Link(port(value), value & 4 != 0),
            8 => Self::Send(MSS),
            9 => Self::Send(usize::from(value) + 1),
            10 | 11 => Self::Write(written(input, steps)?),
            12 => {
                let length: u16 = input.arbitrary()?;
                let length = usize::from(length).min(input.len());
                Self::Write(input.bytes(length)?.to_vec())
            }
            13 => match value % 4 {
                0 => Self::Connected,
                1 => Self::Disconnected,
                _ if steps == StepSet::OpenFlow13 => Self::Message(message13::hello()),
                _ => Self::Handshake,
            },
            14 | 15 => Self::Message(written(input, steps)?),
            _ => Self::Type(typing::read(input)?),
        })
    }

    /// Returns the bytes that make this step in a script of all steps; of those that recorded exchanges consist of.
    ///
    /// # Panics
    /// For steps that recordings do not have.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let with_length =
            |head: &[u8], bytes: &[u8]| [head, &(bytes.len() as u16).to_le_bytes(), bytes].concat();
        match self {
            Self::Frame(port, frame) => with_length(&[0, port.get() - 1, 0, 0], frame),
            Self::Write(bytes) => with_length(&[12, 0], bytes),
            Self::Send(length) if *length == MSS => vec![8, 0],
            Self::Wait(time) => {
                let exponent = (64 - time.as_nanos().saturating_sub(1).leading_zeros()) as u8;
                vec![4, exponent.min(LONGEST_EXPONENT)]
            }
            Self::Connected => vec![13, 0],
            Self::Disconnected => vec![13, 1],
            Self::Handshake => vec![13, 2],
            Self::Link(port, up) => vec![7, (port.get() - 1) | (u8::from(*up) << 2)],
            _ => panic!("recordings have no such step: {self:?}"),
        }
    }
}

fn written(input: &mut Unstructured, steps: StepSet) -> Result<Vec<u8>> {
    if steps == StepSet::OpenFlow13 {
        message13::read(input)
    } else {
        message::read(input)
    }
}

fn port(value: u8) -> PortNumber {
    PortNumber::new(value % 4 + 1).expect("1 to 4")
}

/// From a nanosecond to 18 minutes.
fn pause(value: u8) -> Duration {
    Duration::from_nanos(1 << (value % (LONGEST_EXPONENT + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_recordings_consist_of_is_read_as_it_was_written() {
        let steps = [
            Step::Frame(port(2), vec![1; 60]),
            Step::Frame(port(3), Vec::new()),
            Step::Write(vec![1, 18, 0, 8, 0, 0, 0, 7]),
            Step::Send(MSS),
            Step::Wait(Duration::from_nanos(1 << 22)),
            Step::Connected,
            Step::Disconnected,
            Step::Handshake,
            Step::Link(port(1), true),
            Step::Link(port(0), false),
        ];
        let bytes: Vec<u8> = steps.iter().flat_map(Step::bytes).collect();
        for kinds in [StepSet::OpenFlow, StepSet::Console] {
            let mut input = Unstructured::new(&bytes);
            for step in &steps {
                assert_eq!(Step::read(&mut input, kinds).as_ref(), Ok(step));
            }
            assert!(input.is_empty());
        }
    }
}
