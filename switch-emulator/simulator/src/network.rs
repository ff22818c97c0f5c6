//! Builder of a network: boards, hosts, links, sources.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::Ipv4Addr;

use zodiac_firmware::{Board, Config, ControlCarrier, Instant, PortNumber, Profile};

use crate::capture::{CapturedFrame, CapturedSegment, FrameOnLink};
use crate::conformance::ConformanceChecker;
use crate::controller::{DirectSession, Pace};
use crate::controller_host::{ControllerConfig, ControllerHost};
use crate::device::{Device, SwitchConfig, SwitchProfile};
use crate::error::Error;
use crate::flow::TrafficFlow;
use crate::frame_arena::FrameArena;
use crate::inbox::Inbox;
use crate::link::{End, Link, Timing, HOST_PORT};
use crate::random::Stream;
use crate::schedule::MOST_TIMERS;
use crate::source::{Source, SourceConfig};
use crate::steps::Steps;
use crate::tcp::{Side, TcpConfig, TcpConnection};

/// Streams of random numbers below this belong to flows, from here on to boards.
const BOARD_STREAMS: u64 = 1 << 32;
/// From here on to controllers.
const CONTROLLER_STREAMS: u64 = 1 << 33;
/// Latest instant of a run that can be planned for.
const MAX_PLANNED_NS: u64 = 1_000_000_000_000_000;

/// A board or another device. The fields that each frame needs come first, in few cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct BoardNode {
    pub(crate) inbox: Inbox,
    pub(crate) device: Device,
    pub(crate) name: String,
    pub(crate) session: DirectSession,
    /// If it keeps its connection to the controller itself: its IP address, and the ports that carry the connection.
    pub(crate) on_network: Option<(Ipv4Addr, Vec<PortNumber>)>,
    link_rate_bps: u64,
    /// Whether its ports may run at lower rates.
    has_lower_rates: bool,
    /// How many bytes of a frame it waits for, or `None` if it waits for the whole frame.
    header_bytes: Option<u64>,
    /// Outgoing link of each port, from port 1 on.
    pub(crate) links: Vec<Option<usize>>,
}

#[derive(Debug)]
pub(crate) struct HostNode {
    pub(crate) name: String,
    /// Outgoing link.
    pub(crate) link: Option<usize>,
    /// Connections that end here, by index.
    pub(crate) tcp: Vec<(usize, Side)>,
    /// Whether sources send from here.
    has_sources: bool,
}

/// A link that goes down or comes up during the run: its cable is pulled out or plugged in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkEvent {
    /// After the beginning of the run.
    pub(crate) at_ns: u64,
    /// One of its two links.
    pub(crate) link: usize,
    pub(crate) is_up: bool,
}

impl LinkEvent {
    /// Returns both directions of the cable.
    pub(crate) fn links(self) -> [usize; 2] {
        // connect() adds the two links of a cable one after the other.
        [self.link, self.link ^ 1]
    }
}

/// Node that a name refers to, by index among nodes of its kind.
#[derive(Debug, Clone, Copy)]
enum Named {
    Board(usize),
    Host(usize),
    Controller(usize),
}

/// Route of a flow: indices of the hosts, and of the first link.
struct Route {
    from: usize,
    to: Option<usize>,
    link: usize,
}

/// Boards, hosts and cables, and the sources on the hosts. See the crate's documentation.
#[derive(Debug)]
pub struct Network {
    seed: u64,
    names: HashMap<String, Named>,
    flow_ids: HashSet<u32>,
    pub(crate) boards: Vec<BoardNode>,
    pub(crate) hosts: Vec<HostNode>,
    pub(crate) controllers: Vec<ControllerHost>,
    pub(crate) links: Vec<Link>,
    pub(crate) arena: FrameArena,
    /// In order of time.
    pub(crate) link_events: VecDeque<LinkEvent>,
    /// One for each flow, in the same order.
    pub(crate) sources: Vec<Source>,
    pub(crate) flows: Vec<TrafficFlow>,
    pub(crate) connections: Vec<TcpConnection>,
    pub(crate) has_run: bool,
    /// If it is advanced step by step.
    pub(crate) steps: Option<Steps>,
    /// The frames on all links so far, if they are captured.
    pub(crate) capture: Option<Vec<FrameOnLink>>,
}

impl Network {
    /// Creates an empty network. `seed` fixes all that is random in it.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            names: HashMap::new(),
            flow_ids: HashSet::new(),
            boards: Vec::new(),
            hosts: Vec::new(),
            controllers: Vec::new(),
            links: Vec::new(),
            arena: FrameArena::default(),
            link_events: VecDeque::new(),
            sources: Vec::new(),
            flows: Vec::new(),
            connections: Vec::new(),
            has_run: false,
            steps: None,
            capture: None,
        }
    }

    /// Adds a board, powered up at instant zero.
    ///
    /// # Errors
    /// [`Error::Name`] if the name is taken, [`Error::Board`] if no board can have that `config`.
    pub fn add_board(
        &mut self,
        name: &str,
        profile: &Profile,
        config: Config,
    ) -> Result<(), Error> {
        self.check_new(name)?;
        let seed = Stream::new(self.seed, BOARD_STREAMS + self.boards.len() as u64).bits();
        let on_network = (config.control == ControlCarrier::Network)
            .then(|| (config.ip_address, config.native_ports.clone()));
        let mut board = Board::new(profile, config, seed).map_err(|error| Error::Board {
            name: name.into(),
            reason: error.to_string(),
        })?;
        board.advance(Instant::ZERO); // powers it up
        let ports = (profile.ports.count as u8, profile.ports.link_rate_bps);
        self.push_device(name, Device::Board(board), ports);
        if let Some(node) = self.boards.last_mut() {
            node.on_network = on_network;
        }
        Ok(())
    }

    /// Adds a switch of another kind than the Zodiac FX. Wherever a board can be named, so can it.
    ///
    /// # Errors
    /// [`Error::Name`] if the name is taken, [`Error::Board`] if such a switch cannot have that `config`.
    pub fn add_switch(
        &mut self,
        name: &str,
        profile: &SwitchProfile,
        config: &SwitchConfig,
    ) -> Result<(), Error> {
        self.check_new(name)?;
        let seed = Stream::new(self.seed, BOARD_STREAMS + self.boards.len() as u64).bits();
        let switch = profile.build(config, seed).map_err(|reason| Error::Board {
            name: name.into(),
            reason,
        })?;
        let device = Device::Switch(switch);
        self.push_device(name, device, profile.ports(config));
        if let Some(node) = self.boards.last_mut() {
            node.header_bytes = profile.header_bytes();
            node.has_lower_rates = profile.has_lower_rates();
        }
        Ok(())
    }

    fn push_device(&mut self, name: &str, device: Device, (ports, link_rate_bps): (u8, u64)) {
        self.names
            .insert(name.into(), Named::Board(self.boards.len()));
        self.boards.push(BoardNode {
            inbox: Inbox::default(),
            device,
            name: name.into(),
            session: DirectSession::default(),
            on_network: None,
            link_rate_bps,
            has_lower_rates: false,
            header_bytes: None,
            links: vec![None; usize::from(ports)],
        });
    }

    /// Adds a host with one port, number 1.
    ///
    /// # Errors
    /// [`Error::Name`] if the name is taken.
    pub fn add_host(&mut self, name: &str) -> Result<(), Error> {
        self.check_new(name)?;
        self.names
            .insert(name.into(), Named::Host(self.hosts.len()));
        self.hosts.push(HostNode {
            name: name.into(),
            link: None,
            tcp: Vec::new(),
            has_sources: false,
        });
        Ok(())
    }

    /// Adds a controller that listens on the network of its cables; each of its ports takes one.
    ///
    /// # Errors
    /// [`Error::Name`] if the name is taken, [`Error::Value`] for an address or port that no controller can have.
    pub fn add_controller(&mut self, name: &str, config: ControllerConfig) -> Result<(), Error> {
        self.check_new(name)?;
        config.check()?;
        let seed = Stream::new(
            self.seed,
            CONTROLLER_STREAMS + self.controllers.len() as u64,
        )
        .bits();
        self.names
            .insert(name.into(), Named::Controller(self.controllers.len()));
        self.controllers
            .push(ControllerHost::new(name, config, seed));
        Ok(())
    }

    /// Lays a cable between two ports, each given as (name, port number).
    ///
    /// # Errors
    /// [`Error::Name`] for an unknown name, [`Error::Port`] for a port that does not exist, is in use, or cannot
    /// run at `rate_bps`; [`Error::Value`] for a rate or propagation that means nothing.
    pub fn connect(
        &mut self,
        a: (&str, u8),
        b: (&str, u8),
        rate_bps: f64,
        propagation_ns: u64,
    ) -> Result<(), Error> {
        let timing = Timing::new(rate_bps, propagation_ns)?;
        self.check_room(2)?;
        let ends = [self.free_port(a, timing)?, self.free_port(b, timing)?];
        if ends[0] == ends[1] {
            return Err(Error::Port(format!(
                "{} port {} cannot be connected to itself",
                a.0, a.1
            )));
        }
        for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            let link = self.links.len();
            let header_bytes = match to {
                End::Board(board, _) => self.boards[board].header_bytes,
                End::Host(_) | End::Controller(..) => None,
            };
            self.links.push(Link::new(timing, to, header_bytes));
            match from {
                End::Board(board, port) => {
                    let node = &mut self.boards[board];
                    node.device.lay_cable(port, timing.rate_bps());
                    node.links[usize::from(port) - 1] = Some(link);
                }
                End::Host(host) => self.hosts[host].link = Some(link),
                End::Controller(controller, port) => {
                    self.controllers[controller].links.insert(port, link);
                }
            }
        }
        Ok(())
    }

    /// Plans that the cable in a port, given as (name, port number), is pulled out `at_ns` after the beginning of the run:
    /// what is on it then or comes onto it later is lost, and boards at its ends see it. Plans are made in order of time.
    ///
    /// # Errors
    /// [`Error::Name`] for an unknown name, [`Error::Port`] for a port without a cable, [`Error::Value`] if a later change
    /// was planned already, [`Error::Order`] after the run.
    pub fn unplug(&mut self, port: (&str, u8), at_ns: u64) -> Result<(), Error> {
        self.plan_link_event(port, at_ns, false)
    }

    /// Plans that a cable that was pulled out is plugged in again, as [`unplug`](Self::unplug).
    ///
    /// # Errors
    /// Those of `unplug`.
    pub fn plug(&mut self, port: (&str, u8), at_ns: u64) -> Result<(), Error> {
        self.plan_link_event(port, at_ns, true)
    }

    fn plan_link_event(
        &mut self,
        (name, port): (&str, u8),
        at_ns: u64,
        is_up: bool,
    ) -> Result<(), Error> {
        if self.has_run {
            return Err(Error::Order(
                "plug() or unplug() after run(): plan the changes before the run".into(),
            ));
        }
        let link = self.link_at((name, port))?;
        let last_ns = self.link_events.back().map_or(0, |event| event.at_ns);
        if !(last_ns..=MAX_PLANNED_NS).contains(&at_ns) {
            return Err(Error::Value {
                name: "at_ns",
                value: at_ns.to_string(),
                range: format!("{last_ns} .. {MAX_PLANNED_NS}, after the change planned before it"),
            });
        }
        let event = LinkEvent { at_ns, link, is_up };
        self.link_events.push_back(event);
        Ok(())
    }

    /// Returns the link that leaves by a port. `Error::Name` or `Error::Port` if there is none.
    pub(crate) fn link_at(&self, (name, port): (&str, u8)) -> Result<usize, Error> {
        let place = usize::from(port).wrapping_sub(1);
        let link = match self.names.get(name) {
            Some(&Named::Board(index)) => self.boards[index].links.get(place).copied().flatten(),
            Some(&Named::Host(index)) => self.hosts[index].link.filter(|_| port == HOST_PORT),
            Some(&Named::Controller(index)) => self.controllers[index].links.get(&port).copied(),
            None => {
                return Err(Error::Name(format!(
                    "there is neither board nor host nor controller named {name:?}: add it first"
                )))
            }
        };
        link.ok_or_else(|| {
            Error::Port(format!(
                "port {port} of {name:?} has no cable: connect() it first"
            ))
        })
    }

    /// Returns whether a link is down at `at_ns` after the beginning of the run, by the planned events.
    pub(crate) fn is_down_at(&self, link: usize, at_ns: u64) -> bool {
        let planned = self.link_events.iter();
        planned
            .take_while(|event| event.at_ns <= at_ns)
            .filter(|event| event.links().contains(&link))
            .fold(self.links[link].is_down, |_, event| !event.is_up)
    }

    /// Hands `segments` to a board, each as the payload of one TCP segment from its controller, 10 ms apart,
    /// and returns what the board sent meanwhile. The first call opens the session.
    ///
    /// A board on a network is spoken to by the controller at the other end of its cable, in frames, and the whole
    /// network lives meanwhile.
    ///
    /// # Errors
    /// [`Error::Name`] if there is no such board, [`Error::Order`] after the run, or if a board on a network does not
    /// reach a controller.
    pub fn control(&mut self, board: &str, segments: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
        self.control_at(board, segments, Pace::default())
    }

    /// As [`control`](Self::control), at another pace, which a board on a network does not allow.
    ///
    /// # Errors
    /// Those of `control`, [`Error::Order`] for a board on a network, [`Error::Value`] for a pace above 10^15 ns.
    pub fn control_at(
        &mut self,
        board: &str,
        segments: &[Vec<u8>],
        pace: Pace,
    ) -> Result<Vec<Vec<u8>>, Error> {
        if pace.spacing_ns > MAX_PLANNED_NS {
            return Err(Error::Value {
                name: "spacing_ns",
                value: pace.spacing_ns.to_string(),
                range: format!("0 .. {MAX_PLANNED_NS}"),
            });
        }
        if self.has_run {
            return Err(Error::Order(
                "control() after run(): install the flows before the run".into(),
            ));
        }
        let index = self.board(board).ok_or_else(|| {
            Error::Name(format!(
                "there is no board named {board:?}: add it with add_board() first"
            ))
        })?;
        if self.boards[index].on_network.is_some() {
            if pace != Pace::default() {
                return Err(Error::Order(format!(
                    "board {board:?} is on a network: its controller has one pace, leave spacing_ns and await_reply out"
                )));
            }
            return self.control_by_network(index, segments);
        }
        let node = &mut self.boards[index];
        Ok(node.session.exchange(&mut node.device, segments, pace))
    }

    /// Plans what the controller sends to a board during the run: instants after its beginning, in order, each with
    /// the payload of one TCP segment. Replies are thrown away. The session must be open.
    ///
    /// # Errors
    /// [`Error::Name`] if there is no such board, [`Error::Order`] after the run or without a session,
    /// [`Error::Value`] if the instants do not rise.
    pub fn plan_control(
        &mut self,
        board: &str,
        segments: Vec<(u64, Vec<u8>)>,
    ) -> Result<(), Error> {
        let node = match self.board(board) {
            Some(index) if !self.has_run => &mut self.boards[index],
            Some(_) => {
                return Err(Error::Order(
                    "plan_control() after run(): plan the segments before the run".into(),
                ))
            }
            None => {
                return Err(Error::Name(format!(
                    "there is no board named {board:?}: add it with add_board() first"
                )))
            }
        };
        if node.on_network.is_none() && !node.session.is_open() {
            return Err(Error::Order(format!(
                "plan_control() for {board:?} without a session: open it with control() first"
            )));
        }
        let mut last_ns = node.session.planned.back().map_or(0, |(at_ns, _)| *at_ns);
        for (at_ns, _) in &segments {
            if *at_ns < last_ns {
                return Err(Error::Value {
                    name: "at_ns",
                    value: at_ns.to_string(),
                    range: format!("{last_ns} or later, after the segment before it"),
                });
            }
            last_ns = *at_ns;
        }
        node.session.planned.extend(segments);
        Ok(())
    }

    /// Adds a source to a host that is connected already.
    ///
    /// # Errors
    /// [`Error::Name`] for an unknown host, [`Error::Port`] if it is not connected, [`Error::Source`] or
    /// [`Error::Value`] if it could not send what `config` says, [`Error::Order`] after [`advance`](Self::advance).
    pub fn add_source(&mut self, host: &str, config: SourceConfig) -> Result<(), Error> {
        let route = self.route(host, config.flow, config.destination.as_deref())?;
        if !self.hosts[route.from].tcp.is_empty() {
            return Err(Error::Source {
                flow: config.flow,
                reason: format!("host {host:?} sends TCP: let it have hosts of its own"),
            });
        }
        let source = Source::new(&config, self.links[route.link].timing, self.seed)?;
        let conformance =
            ConformanceChecker::new(config.shaper_rate_bps, config.shaper_burst_bytes);
        self.flow_ids.insert(config.flow);
        self.flows.push(TrafficFlow::new(
            config.flow,
            config.frame,
            config.sequence_offset,
            config.observed,
            (route.from, route.to),
            conformance,
        ));
        self.sources.push(source);
        self.hosts[route.from].has_sources = true;
        Ok(())
    }

    /// Adds a bulk transfer over TCP between two hosts that are connected already. Neither may have sources of another kind:
    /// such take turns on a line that is theirs.
    ///
    /// # Errors
    /// [`Error::Name`] for an unknown host, [`Error::Port`] if one is not connected, [`Error::Source`] if nothing can be sent as
    /// `config` says.
    pub fn add_tcp(&mut self, host: &str, config: &TcpConfig) -> Result<(), Error> {
        let route = self.route(host, config.flow, Some(&config.destination))?;
        let to = self.host(&config.destination)?;
        for (end, name) in [(route.from, host), (to, &config.destination)] {
            let refuse = |reason| {
                Err(Error::Source {
                    flow: config.flow,
                    reason,
                })
            };
            if self.hosts[end].has_sources {
                return refuse(format!(
                    "host {name:?} has other sources: let TCP have hosts of its own"
                ));
            }
            if self.hosts[end].link.is_none() {
                return refuse(format!(
                    "host {name:?} is not connected: connect() it first"
                ));
            }
        }
        if route.from == to {
            return Err(Error::Source {
                flow: config.flow,
                reason: format!("host {host:?} cannot send to itself"),
            });
        }
        self.check_room(2)?;
        let connection = TcpConnection::new(config, [route.from, to])?;
        self.flow_ids.insert(config.flow);
        let index = self.connections.len();
        self.hosts[route.from].tcp.push((index, Side::Sender));
        self.hosts[to].tcp.push((index, Side::Receiver));
        self.connections.push(connection);
        Ok(())
    }

    /// Returns the route of a new flow.
    fn route(&self, host: &str, flow: u32, destination: Option<&str>) -> Result<Route, Error> {
        if self.steps.is_some() {
            return Err(Error::Order(
                "add_source() after advance(): let hosts send() their frames instead".into(),
            ));
        }
        let from = self.host(host)?;
        let to = destination.map(|name| self.host(name)).transpose()?;
        let link = self.hosts[from].link.ok_or_else(|| {
            Error::Port(format!(
                "host {host:?} is not connected: connect() it before add_source()"
            ))
        })?;
        if self.flow_ids.contains(&flow) {
            return Err(Error::Source {
                flow,
                reason: "is there already: number flows apart".into(),
            });
        }
        self.check_room(1)?;
        Ok(Route { from, to, link })
    }

    fn check_new(&self, name: &str) -> Result<(), Error> {
        if self.names.contains_key(name) {
            return Err(Error::Name(format!(
                "{name:?} is in the network already: choose another name"
            )));
        }
        self.check_room(2)
    }

    /// Checks that the schedule of a run has room for this many more timers: it has one for the changes of cables, two for
    /// each board, controller and transfer over TCP, and one for each source.
    fn check_room(&self, more: usize) -> Result<(), Error> {
        let timers = 1
            + 2 * self.boards.len()
            + 2 * self.controllers.len()
            + self.sources.len()
            + 2 * self.connections.len();
        if timers + more > MOST_TIMERS {
            return Err(Error::Order(format!(
                "a network has at most {MOST_TIMERS} timers: two for each board, one for each source, two for each \
                 transfer over TCP"
            )));
        }
        Ok(())
    }

    pub(crate) fn board(&self, name: &str) -> Option<usize> {
        match self.names.get(name) {
            Some(Named::Board(index)) => Some(*index),
            _ => None,
        }
    }

    pub(crate) fn host(&self, name: &str) -> Result<usize, Error> {
        match self.names.get(name) {
            Some(Named::Host(index)) => Ok(*index),
            _ => Err(Error::Name(format!(
                "there is no host named {name:?}: add it with add_host() first"
            ))),
        }
    }

    fn free_port(&self, (name, port): (&str, u8), timing: Timing) -> Result<End, Error> {
        if let Some(index) = self.board(name) {
            let node = &self.boards[index];
            let place = usize::from(port).wrapping_sub(1);
            let connected = node.links.get(place).ok_or_else(|| {
                Error::Port(format!(
                    "board {name:?} has no port {port}: give 1 .. {}",
                    node.links.len()
                ))
            })?;
            if connected.is_some() {
                return Err(Error::Port(format!(
                    "port {port} of {name:?} is connected already"
                )));
            }
            let is_lower = timing.rate_bps() < node.link_rate_bps;
            if timing.rate_bps() != node.link_rate_bps && !(is_lower && node.has_lower_rates) {
                return Err(Error::Port(format!(
                    "port {port} of {name:?} runs at {} bit/s: give its links that rate_bps{}",
                    node.link_rate_bps,
                    if node.has_lower_rates {
                        ", or a lower one"
                    } else {
                        ""
                    }
                )));
            }
            return Ok(End::Board(index, port));
        }
        if let Some(&Named::Controller(index)) = self.names.get(name) {
            if self.controllers[index].links.contains_key(&port) {
                return Err(Error::Port(format!(
                    "port {port} of {name:?} is connected already"
                )));
            }
            return Ok(End::Controller(index, port));
        }
        let index = self.host(name).map_err(|_| {
            Error::Name(format!(
                "there is neither board nor host nor controller named {name:?}: add it first"
            ))
        })?;
        if port != HOST_PORT {
            return Err(Error::Port(format!(
                "host {name:?} has no port {port}: its only port is 1"
            )));
        }
        if self.hosts[index].link.is_some() {
            return Err(Error::Port(format!("host {name:?} is connected already")));
        }
        Ok(End::Host(index))
    }
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
