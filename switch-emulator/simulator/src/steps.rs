//! Outputs of a network that is simulated stepwise, kept until the caller takes them.

use crate::device::DeviceOutputKind;

/// Output of a step.
#[derive(Debug, PartialEq, Eq)]
pub struct StepOutput {
    /// When; for a frame, when its first bit reached the host's tap.
    pub at_ns: u64,
    /// The board or host that it is about.
    pub node: String,
    /// Kind of the output.
    pub kind: StepOutputKind,
}

/// Kind of an output.
#[derive(Debug, PartialEq, Eq)]
pub enum StepOutputKind {
    /// A frame, without frame check sequence, that has reached a host.
    Frame(Vec<u8>),
    /// Bytes of a board for its controller.
    Controller(Vec<u8>),
    /// A board wants a session with its controller.
    Connect,
    /// A board has ended the session.
    Close,
    /// Something went wrong on a board: what, where, and how to mend it.
    Event(String),
}

/// State of a network between steps.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) now_ns: u64,
    outputs: Vec<StepOutput>,
}

impl Steps {
    /// Begins at this instant.
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            now_ns,
            outputs: Vec::new(),
        }
    }

    /// Takes what was given out up to now, in order of time.
    pub(crate) fn take(&mut self) -> Vec<StepOutput> {
        self.outputs.sort_by_key(|output| output.at_ns);
        let outputs = self.outputs.iter();
        let present = outputs
            .take_while(|output| output.at_ns <= self.now_ns)
            .count();
        self.outputs.drain(..present).collect()
    }

    /// A frame's first bit reaches a host at `at_ns`, which may lie after the present.
    pub(crate) fn received(&mut self, at_ns: u64, host: &str, data: &[u8]) {
        self.push(at_ns, host, StepOutputKind::Frame(data.to_vec()));
    }

    fn push(&mut self, at_ns: u64, node: &str, kind: StepOutputKind) {
        self.outputs.push(StepOutput {
            at_ns,
            node: node.into(),
            kind,
        });
    }

    /// Adds an output of a board other than a frame.
    pub(crate) fn board_output(&mut self, at_ns: u64, board: &str, kind: DeviceOutputKind) {
        let kind = match kind {
            DeviceOutputKind::Controller(bytes) => StepOutputKind::Controller(bytes),
            DeviceOutputKind::Connect => StepOutputKind::Connect,
            DeviceOutputKind::Close => StepOutputKind::Close,
            DeviceOutputKind::Event(report) => StepOutputKind::Event(report.text),
            DeviceOutputKind::Frame { .. } => return,
        };
        self.push(at_ns, board, kind);
    }
}
