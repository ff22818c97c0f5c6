//! Capture: every frame on a cable, and every message of a control session that needs no cable.

use crate::link::{End, HOST_PORT};
use crate::network::Network;

/// A frame on a cable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When its first bit left the sender.
    pub sent_ns: u64,
    /// When its first bit reached the other end.
    pub received_ns: u64,
    /// Name and port of the sender.
    pub from: (String, u8),
    /// Name and port at the other end.
    pub to: (String, u8),
    /// The frame, without frame check sequence and padding.
    pub data: Vec<u8>,
}

/// Payload of a TCP segment between a board and its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedSegment {
    /// When the board sent it, or when it reached the board.
    pub at_ns: u64,
    /// Whether the board sent it.
    pub is_from_board: bool,
    /// The payload.
    pub data: Vec<u8>,
}

/// A frame as it is kept during a run.
#[derive(Debug)]
pub(crate) struct FrameOnLink {
    pub(crate) link: usize,
    pub(crate) begin_ns: u64,
    pub(crate) data: Vec<u8>,
}

impl Network {
    /// Begins to capture the frames on all cables, and the messages of the control sessions of all boards that have been
    /// added. Instants count from power-up.
    pub fn begin_capture(&mut self) {
        self.capture = Some(Vec::new());
        for node in &mut self.boards {
            node.session.capture = Some(Vec::new());
        }
    }

    /// Takes the captured frames, in order of departure. Frames that were lost because their cable was out when they
    /// left are not among them.
    pub fn captured_frames(&mut self) -> Vec<CapturedFrame> {
        let mut frames = self
            .capture
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        frames.sort_by_key(|frame| frame.begin_ns);
        let senders = self.senders();
        let frames = frames.into_iter().map(|frame| {
            let link = &self.links[frame.link];
            CapturedFrame {
                sent_ns: frame.begin_ns,
                received_ns: frame.begin_ns + link.timing.propagation_ns(),
                from: senders[frame.link].clone(),
                to: (self.end_name(link.end).into(), link.end.port()),
                data: frame.data,
            }
        });
        frames.collect()
    }

    /// Takes the captured segments of each board's control session, by its name, in order of time.
    pub fn captured_segments(&mut self) -> Vec<(String, Vec<CapturedSegment>)> {
        let sessions = self.boards.iter_mut().map(|node| {
            let mut segments = node.session.capture.as_mut().map(std::mem::take);
            if let Some(segments) = &mut segments {
                segments.sort_by_key(|segment| segment.at_ns);
            }
            (node.name.clone(), segments.unwrap_or_default())
        });
        sessions.collect()
    }

    fn end_name(&self, end: End) -> &str {
        match end {
            End::Board(board, _) => &self.boards[board].name,
            End::Host(host) => &self.hosts[host].name,
            End::Controller(controller, _) => &self.controllers[controller].name,
        }
    }

    /// Returns name and port of the sender of each link.
    fn senders(&self) -> Vec<(String, u8)> {
        let mut senders = vec![(String::new(), 0); self.links.len()];
        for node in &self.boards {
            for (port, link) in (1..).zip(&node.links) {
                if let Some(link) = *link {
                    senders[link] = (node.name.clone(), port);
                }
            }
        }
        for host in &self.hosts {
            if let Some(link) = host.link {
                senders[link] = (host.name.clone(), HOST_PORT);
            }
        }
        for controller in &self.controllers {
            for (port, link) in &controller.links {
                senders[*link] = (controller.name.clone(), *port);
            }
        }
        senders
    }
}
