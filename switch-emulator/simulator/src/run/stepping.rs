//! Stepwise simulation for a caller that keeps the sessions with the boards and decides what hosts send.

use zodiac_firmware::{Board, Instant};

use super::Run;
use crate::device::{Device, DeviceOutputKind};
use crate::error::Error;
use crate::inbox::InFlightFrame;
use crate::link::{size_on_wire, End, FCS_BYTES};
use crate::network::{LinkEvent, Network};
use crate::steps::{StepOutput, Steps};

/// Longest frame that a host can send, with its frame check sequence: a tagged one.
const MAX_FRAME_BYTES: usize = 1522;

impl Network {
    /// Simulates until `to_ns` since the boards were powered up. From the first call on, this takes the place of
    /// [`run`](Self::run): the caller keeps the boards' sessions and lets hosts send, and the messages of the boards
    /// and the frames at the hosts are among the [`step_outputs`](Self::step_outputs).
    ///
    /// # Errors
    /// [`Error::Order`] after a run, or if there are sources; [`Error::Value`] if `to_ns` lies before
    /// [`now_ns`](Self::now_ns).
    pub fn advance(&mut self, to_ns: u64) -> Result<(), Error> {
        self.check_later("to_ns", to_ns)?;
        self.in_steps(to_ns, |_| ())
    }

    fn check_later(&self, name: &'static str, at_ns: u64) -> Result<(), Error> {
        let now_ns = self.now_ns();
        if at_ns >= now_ns {
            return Ok(());
        }
        Err(Error::Value {
            name,
            value: at_ns.to_string(),
            range: format!("{now_ns} or later, the network's present"),
        })
    }

    /// A board's session with its controller is established, now.
    ///
    /// # Errors
    /// [`Error::Name`] if there is no such board, and those of `advance`.
    pub fn connected(&mut self, board: &str) -> Result<(), Error> {
        self.at_board(board, Device::connected)
    }

    /// A board's session with its controller is gone, now.
    ///
    /// # Errors
    /// As of `connected`.
    pub fn disconnected(&mut self, board: &str) -> Result<(), Error> {
        self.at_board(board, Device::disconnected)
    }

    /// The payload of one TCP segment from the controller reaches a board, now.
    ///
    /// # Errors
    /// As of `connected`.
    pub fn segment(&mut self, board: &str, data: &[u8]) -> Result<(), Error> {
        self.at_board(board, |device, now| device.segment(now, data))
    }

    /// Characters typed at the serial console of a Zodiac FX, now.
    ///
    /// # Errors
    /// As of `connected`, also if the board is another kind of device.
    pub fn console(&mut self, board: &str, typed: &[u8]) -> Result<(), Error> {
        self.zodiac(board)?;
        self.at_board(board, |device, now| {
            if let Device::Board(board) = device {
                board.console(now, typed);
            }
        })
    }

    /// Pulls out the cable in a port, given as (name, port number), or plugs it in again, now. What is on it, or comes
    /// onto it while it is out, is lost, and boards at its ends see it.
    ///
    /// # Errors
    /// [`Error::Name`] for an unknown name, [`Error::Port`] for a port without a cable, and those of `advance`.
    pub fn set_link(&mut self, port: (&str, u8), is_up: bool) -> Result<(), Error> {
        let link = self.link_at(port)?;
        self.in_steps(self.now_ns(), |run| {
            let now_ns = run.now_ns;
            let event = LinkEvent {
                at_ns: 0,
                link,
                is_up,
            };
            run.set_links(event, now_ns);
        })
    }

    /// Lets a host send a frame, without frame check sequence, at `at_ns` or as soon afterwards as its link is free.
    /// Returns when the link is free again. A host's frames must be passed in the order in which they leave.
    ///
    /// # Errors
    /// [`Error::Name`] if there is no such host, [`Error::Port`] if it is not connected, [`Error::Value`] if the frame is too
    /// long for Ethernet or `at_ns` lies before [`now_ns`](Self::now_ns), and those of `advance`.
    pub fn send(&mut self, host: &str, frame: Vec<u8>, at_ns: u64) -> Result<u64, Error> {
        let index = self.host(host)?;
        let Some(outgoing) = self.hosts[index].link else {
            return Err(Error::Port(format!(
                "host {host:?} is not connected: connect() it before send()"
            )));
        };
        let longest = MAX_FRAME_BYTES - FCS_BYTES as usize;
        if frame.len() > longest {
            return Err(Error::Value {
                name: "length of the frame without FCS",
                value: frame.len().to_string(),
                range: format!("0 .. {longest}"),
            });
        }
        self.check_later("at_ns", at_ns)?;
        let now_ns = self.now_ns();
        if self.steps.is_none() {
            self.begin_steps()?;
        }
        let bytes = size_on_wire(frame.len());
        let link = &mut self.links[outgoing];
        let begin_ns = link.busy_until_ns().max(at_ns);
        link.occupy(begin_ns, bytes);
        let free_ns = link.busy_until_ns();
        if link.is_down {
            return Ok(free_ns);
        }
        if let (End::Host(far), Some(steps)) = (link.end, &mut self.steps) {
            let tapped_ns = begin_ns + link.timing.propagation_ns();
            steps.received(tapped_ns, &self.hosts[far].name, &frame);
        } else {
            // The next step arms the timer of its arrival.
            let arrival_ns = link.arrival_ns(begin_ns, bytes);
            let frame = InFlightFrame::of_bytes(frame, &mut self.arena)
                .on_link(arrival_ns, outgoing, link.end);
            self.enqueue_arrival(frame, now_ns);
        }
        Ok(free_ns)
    }

    /// Takes what came out of the boards and reached the hosts up to now, in order of time.
    pub fn step_outputs(&mut self) -> Vec<StepOutput> {
        self.steps.as_mut().map(Steps::take).unwrap_or_default()
    }

    /// Returns the Zodiac FX of this name.
    ///
    /// # Errors
    /// [`Error::Name`] if there is none.
    pub fn zodiac(&self, name: &str) -> Result<&Board, Error> {
        match self.board(name).map(|index| &self.boards[index].device) {
            Some(Device::Board(board)) => Ok(board),
            Some(Device::Switch(_)) => Err(Error::Name(format!(
                "{name:?} is another kind of device than a Zodiac FX, whose table cannot be read"
            ))),
            None => Err(unknown_board(name)),
        }
    }

    fn at_board(
        &mut self,
        board: &str,
        action: impl FnOnce(&mut Device, Instant),
    ) -> Result<(), Error> {
        let index = self.board(board).ok_or_else(|| unknown_board(board))?;
        self.in_steps(self.now_ns(), |run| {
            let now_ns = run.now_ns;
            let device = &mut run.net.boards[index].device;
            action(device, Instant::from_nanos(now_ns));
            run.collect(index, now_ns);
        })
    }

    /// Simulates until `to_ns`, then performs `action`.
    fn in_steps<T>(&mut self, to_ns: u64, action: impl FnOnce(&mut Run) -> T) -> Result<T, Error> {
        if self.steps.is_none() {
            self.begin_steps()?;
        }
        let mut run = Run::new(self, to_ns);
        run.has_link_events = run.net.links.iter().any(|link| link.is_down);
        run.run_to_end();
        run.now_ns = to_ns;
        let result = action(&mut run);
        if let Some(steps) = &mut self.steps {
            steps.now_ns = to_ns;
        }
        Ok(result)
    }

    fn begin_steps(&mut self) -> Result<(), Error> {
        if self.has_run {
            return Err(Error::Order(
                "advance() after run(): build a new network".into(),
            ));
        }
        if !self.sources.is_empty() || !self.connections.is_empty() {
            return Err(Error::Order(
                "advance() with sources, which send in a run() only: let hosts send() their frames instead".into(),
            ));
        }
        self.has_run = true;
        let now_ns = self.now_ns();
        let mut steps = Steps::new(now_ns);
        for node in &mut self.boards {
            for (port, _) in (1..).zip(&node.links).filter(|(_, link)| link.is_none()) {
                node.device.lacks_cable(Instant::from_nanos(now_ns), port);
            }
            for (at_ns, report) in std::mem::take(&mut node.session.events) {
                steps.board_output(at_ns, &node.name, DeviceOutputKind::Event(report));
            }
        }
        self.steps = Some(steps);
        Ok(())
    }
}

fn unknown_board(name: &str) -> Error {
    Error::Name(format!(
        "there is no board named {name:?}: add it with add_board() first"
    ))
}
