//! One board, driven by hand.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use zodiac_firmware as firmware;
use zodiac_firmware::{Instant, MacAddress, OutputKind, PortNumber};
use zodiac_simulator::{StepOutput, StepOutputKind};

use crate::argument::{board_profile, config, nanoseconds, whole, wrong, MAX_NS};

/// How many bytes of what a board gave out are shown.
const SHOWN_BYTES: usize = 48;

/// Something that a board gave out.
#[pyclass(frozen, eq, get_all, module = "switch_emulator")]
#[derive(PartialEq)]
pub(crate) struct Output {
    at_ns: u64,
    kind: &'static str,
    port: u8,
    data: Vec<u8>,
}

#[pymethods]
impl Output {
    fn __repr__(&self) -> String {
        let shown = &self.data[..self.data.len().min(SHOWN_BYTES)];
        let (rest, length) = match self.data.len() {
            length if length > SHOWN_BYTES => ("...", format!(" ({length} bytes)")),
            _ => ("", String::new()),
        };
        format!(
            "Output(at_ns={}, kind='{}', port={}, data=b'{}{rest}'{length})",
            self.at_ns,
            self.kind,
            self.port,
            shown.escape_ascii()
        )
    }
}

impl From<firmware::Output> for Output {
    fn from(output: firmware::Output) -> Self {
        let (kind, port, data) = match output.kind {
            OutputKind::Frame { ports, data } => ("frame", ports.bits(), data),
            OutputKind::Controller(data) => ("controller", 0, data),
            OutputKind::Connect => ("event", 0, b"connect".to_vec()),
            OutputKind::Close => ("event", 0, b"close".to_vec()),
            OutputKind::Console(text) => ("console", 0, text),
            OutputKind::Detach => ("event", 0, b"detach".to_vec()),
            OutputKind::Attach => ("event", 0, b"attach".to_vec()),
            OutputKind::Eeprom(_) => ("event", 0, b"eeprom".to_vec()),
            OutputKind::Event(event) => ("event", 0, event.to_string().into_bytes()),
        };
        Self {
            at_ns: output.at.as_nanos(),
            kind,
            port,
            data,
        }
    }
}

impl From<StepOutput> for Output {
    /// A host has one port.
    fn from(output: StepOutput) -> Self {
        let (kind, port, data) = match output.kind {
            StepOutputKind::Frame(data) => ("frame", 1, data),
            StepOutputKind::Controller(data) => ("controller", 0, data),
            StepOutputKind::Connect => ("event", 0, b"connect".to_vec()),
            StepOutputKind::Close => ("event", 0, b"close".to_vec()),
            StepOutputKind::Event(text) => ("event", 0, text.into_bytes()),
        };
        Self {
            at_ns: output.at_ns,
            kind,
            port,
            data,
        }
    }
}

/// Frames that a board gave out, in columns: much quicker than an object for each where there are many.
#[pyclass(frozen, get_all, module = "switch_emulator")]
pub(crate) struct Departures {
    at_ns: Py<PyArray1<u64>>,
    port: Py<PyArray1<u8>>,
    size: Py<PyArray1<u64>>,
    tail: Py<PyArray1<u64>>,
    others: usize,
}

#[pymethods]
impl Departures {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.at_ns.bind(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let frames = self.at_ns.bind(py).len()?;
        Ok(format!(
            "Departures(frames={frames}, others={})",
            self.others
        ))
    }
}

/// Returns the last eight bytes of a frame as a number, most significant first.
fn tail(data: &[u8]) -> u64 {
    let last = &data[data.len().saturating_sub(8)..];
    last.iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// An entry of a board's flow table.
#[pyclass(frozen, eq, get_all, module = "switch_emulator")]
#[derive(PartialEq)]
pub(crate) struct Flow {
    priority: u16,
    cookie: u64,
    wildcards: u32,
    in_port: u16,
    dl_src: String,
    dl_dst: String,
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: String,
    nw_dst: String,
    tp_src: u16,
    tp_dst: u16,
    idle_timeout_s: u16,
    hard_timeout_s: u16,
    flags: u16,
    actions: Vec<Vec<u8>>,
    packets: u64,
    bytes: i64,
}

/// An entry of a board's tables of 1.3.
#[pyclass(frozen, eq, get_all, module = "switch_emulator")]
#[derive(PartialEq)]
pub(crate) struct Flow13 {
    head: Vec<u8>,
    oxms: Vec<u8>,
    instructions: Vec<u8>,
    packets: u64,
    bytes: i64,
}

#[pymethods]
impl Flow13 {
    fn __repr__(&self) -> String {
        format!(
            "Flow13(table={}, packets={}, bytes={}, ...)",
            self.head[24], self.packets, self.bytes
        )
    }
}

impl From<firmware::Flow13> for Flow13 {
    fn from(flow: firmware::Flow13) -> Self {
        Self {
            head: flow.head,
            oxms: flow.oxms,
            instructions: flow.instructions,
            packets: flow.packets,
            bytes: flow.bytes,
        }
    }
}

#[pymethods]
impl Flow {
    fn __repr__(&self) -> String {
        format!(
            "Flow(priority={}, cookie={:#x}, wildcards={:#x}, nw_src='{}', nw_dst='{}', packets={}, ...)",
            self.priority, self.cookie, self.wildcards, self.nw_src, self.nw_dst, self.packets
        )
    }
}

impl From<firmware::Flow> for Flow {
    fn from(flow: firmware::Flow) -> Self {
        let fields = flow.fields;
        // A slot holds its own length in bytes 2 and 3; length 0 means that it is empty.
        let action = |slot: &[u8]| {
            let length = usize::from(u16::from_be_bytes([slot[2], slot[3]]));
            (length > 0).then(|| slot[..length.min(slot.len())].to_vec())
        };
        Self {
            priority: flow.priority,
            cookie: flow.cookie,
            wildcards: fields.wildcards,
            in_port: fields.in_port,
            dl_src: MacAddress(fields.dl_src).to_string(),
            dl_dst: MacAddress(fields.dl_dst).to_string(),
            dl_vlan: fields.dl_vlan,
            dl_vlan_pcp: fields.dl_vlan_pcp,
            dl_type: fields.dl_type,
            nw_tos: fields.nw_tos,
            nw_proto: fields.nw_proto,
            nw_src: Ipv4Addr::from(fields.nw_src).to_string(),
            nw_dst: Ipv4Addr::from(fields.nw_dst).to_string(),
            tp_src: fields.tp_src,
            tp_dst: fields.tp_dst,
            idle_timeout_s: flow.idle_timeout_s,
            hard_timeout_s: flow.hard_timeout_s,
            flags: flow.flags,
            actions: flow
                .actions
                .iter()
                .filter_map(|slot| action(slot))
                .collect(),
            packets: flow.packets,
            bytes: flow.bytes,
        }
    }
}

fn port_number(port: &Bound<'_, PyAny>) -> PyResult<PortNumber> {
    let number = whole("port", port, 4)?;
    PortNumber::new(number).ok_or_else(|| wrong("port is 0: give 1 .. 4"))
}

/// One board in virtual time.
#[pyclass(module = "switch_emulator")]
pub(crate) struct Board {
    board: firmware::Board,
    now_ns: u64,
}

impl Board {
    /// Checks that time does not run backwards.
    fn at(&mut self, name: &str, at_ns: &Bound<'_, PyAny>) -> PyResult<Instant> {
        let at_ns = nanoseconds(name, at_ns)?;
        if at_ns < self.now_ns {
            return Err(wrong(format!(
                "{name} is {at_ns}, but the board is at {} already: call it in order of time",
                self.now_ns
            )));
        }
        self.now_ns = at_ns;
        Ok(Instant::from_nanos(at_ns))
    }
}

#[pymethods]
impl Board {
    #[new]
    #[pyo3(
        signature = (profile = "zodiac-fx", config = None, seed = None, eeprom = None),
        text_signature = "(profile='zodiac-fx', config=None, seed=0, eeprom=None)"
    )]
    fn new(
        profile: &str,
        config: Option<&Bound<'_, PyDict>>,
        seed: Option<&Bound<'_, PyAny>>,
        eeprom: Option<&[u8]>,
    ) -> PyResult<Self> {
        let seed = seed.map_or(Ok(0), |seed| whole("seed", seed, u64::MAX))?;
        let profile = board_profile(profile)?;
        let mut board =
            firmware::Board::new(&profile, self::config(config)?, seed).map_err(wrong)?;
        if let Some(image) = eeprom {
            board = board
                .with_eeprom(image)
                .map_err(|error| wrong(format!("eeprom: {error}")))?;
        }
        board.advance(Instant::ZERO); // powers it up
        Ok(Self { board, now_ns: 0 })
    }

    fn connected(&mut self, at_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let at = self.at("at_ns", at_ns)?;
        self.board.connected(at);
        Ok(())
    }

    fn disconnected(&mut self, at_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let at = self.at("at_ns", at_ns)?;
        self.board.disconnected(at);
        Ok(())
    }

    fn finished(&mut self, at_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let at = self.at("at_ns", at_ns)?;
        self.board.finished(at);
        Ok(())
    }

    fn reset(&mut self, at_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let at = self.at("at_ns", at_ns)?;
        self.board.reset(at);
        Ok(())
    }

    fn link(
        &mut self,
        at_ns: &Bound<'_, PyAny>,
        port: &Bound<'_, PyAny>,
        is_up: bool,
    ) -> PyResult<()> {
        let port = port_number(port)?;
        let at = self.at("at_ns", at_ns)?;
        self.board.link_state(at, port, is_up);
        Ok(())
    }

    fn segment(&mut self, at_ns: &Bound<'_, PyAny>, data: &[u8]) -> PyResult<()> {
        let at = self.at("at_ns", at_ns)?;
        self.board.segment(at, data);
        Ok(())
    }

    fn frame(
        &mut self,
        at_ns: &Bound<'_, PyAny>,
        port: &Bound<'_, PyAny>,
        data: &[u8],
    ) -> PyResult<()> {
        let port = port_number(port)?;
        let at = self.at("at_ns", at_ns)?;
        self.board.frame(at, port, data);
        Ok(())
    }

    fn frames(
        &mut self,
        at_ns: PyReadonlyArray1<'_, i64>,
        port: &Bound<'_, PyAny>,
        frames: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let port = port_number(port)?;
        let instants = at_ns.as_array();
        if instants.len() != frames.len() {
            return Err(wrong(format!(
                "at_ns has {} instants for {} frames: give one for each",
                instants.len(),
                frames.len()
            )));
        }
        // All or none: whatever is wrong is found before the board gets the first one.
        let mut last_ns = self.now_ns;
        for &at_ns in instants {
            last_ns = u64::try_from(at_ns)
                .ok()
                .filter(|at_ns| (last_ns..=MAX_NS.unsigned_abs()).contains(at_ns))
                .ok_or_else(|| {
                    wrong(format!(
                        "at_ns has {at_ns} after {last_ns}: give whole nanoseconds up to {MAX_NS}, in order of time"
                    ))
                })?;
        }
        let frames = frames
            .iter()
            .map(|frame| Ok(frame.cast_into()?))
            .collect::<PyResult<Vec<Bound<'_, PyBytes>>>>()?;
        for (at_ns, frame) in instants.iter().zip(&frames) {
            let at = Instant::from_nanos(at_ns.unsigned_abs());
            self.board.frame(at, port, frame.as_bytes());
        }
        self.now_ns = last_ns;
        Ok(())
    }

    fn console(&mut self, at_ns: &Bound<'_, PyAny>, data: &[u8]) -> PyResult<()> {
        let at = self.at("at_ns", at_ns)?;
        self.board.console(at, data);
        Ok(())
    }

    fn eeprom(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.board.eeprom())
    }

    fn advance(&mut self, to_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let to = self.at("to_ns", to_ns)?;
        self.board.advance(to);
        Ok(())
    }

    fn poll_at(&self) -> Option<u64> {
        self.board.poll_at().map(Instant::as_nanos)
    }

    fn outputs(&mut self) -> Vec<Output> {
        let mut outputs: Vec<Output> = std::iter::from_fn(|| self.board.poll_output())
            .map(Output::from)
            .collect();
        outputs.sort_by_key(|output| output.at_ns);
        outputs
    }

    fn departures(&mut self, py: Python<'_>) -> Departures {
        let (mut frames, mut others) = (Vec::new(), 0);
        while let Some(output) = self.board.poll_output() {
            match output.kind {
                OutputKind::Frame { ports, data } => {
                    let at_ns = output.at.as_nanos();
                    frames.push((at_ns, ports.bits(), data.len() as u64, tail(&data)));
                }
                _ => others += 1,
            }
        }
        frames.sort_by_key(|frame| frame.0);
        let at_ns: Vec<_> = frames.iter().map(|frame| frame.0).collect();
        let port: Vec<_> = frames.iter().map(|frame| frame.1).collect();
        let size: Vec<_> = frames.iter().map(|frame| frame.2).collect();
        let tail: Vec<_> = frames.iter().map(|frame| frame.3).collect();
        Departures {
            at_ns: at_ns.into_pyarray(py).unbind(),
            port: port.into_pyarray(py).unbind(),
            size: size.into_pyarray(py).unbind(),
            tail: tail.into_pyarray(py).unbind(),
            others,
        }
    }

    fn flows(&self) -> Vec<Flow> {
        self.board.flows().into_iter().map(Flow::from).collect()
    }

    fn flows13(&self) -> Vec<Flow13> {
        self.board.flows13().into_iter().map(Flow13::from).collect()
    }

    #[getter]
    fn openflow_version(&self) -> u8 {
        self.board.openflow_version()
    }
}
