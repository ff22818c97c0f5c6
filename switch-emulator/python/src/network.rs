//! Networks of boards and hosts, and the records of a run.

use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use zodiac_simulator as simulator;
use zodiac_simulator::{
    BurstsConfig, CongestionControl, DeviceProfile, Offered, Pace, SourceConfig, StepOutput,
    TcpConfig,
};

use crate::argument::{config, nanoseconds, profile, whole, wrong};
use crate::board::{Flow, Output};

/// A captured frame: when it was sent and received, from where to where, and its bytes.
type PyFrame<'py> = (u64, u64, (String, u8), (String, u8), Bound<'py, PyBytes>);
/// A captured segment of a control session: when, whether the board sent it, and its payload.
type PySegment<'py> = (u64, bool, Bound<'py, PyBytes>);

/// Boards, hosts and links in virtual time.
#[pyclass(frozen, module = "switch_emulator")]
pub(crate) struct Network(Mutex<simulator::Network>);

impl Network {
    /// Does `action` with the network; another thread's call must have ended.
    fn with<T>(
        &self,
        action: impl FnOnce(&mut simulator::Network) -> Result<T, simulator::Error>,
    ) -> PyResult<T> {
        let mut network = self
            .0
            .try_lock()
            .map_err(|_| wrong("the network is in use by another thread"))?;
        action(&mut network).map_err(wrong)
    }
}

#[pymethods]
impl Network {
    #[new]
    fn new(seed: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(Mutex::new(simulator::Network::new(whole(
            "seed",
            seed,
            u64::MAX,
        )?))))
    }

    #[pyo3(signature = (name, *, profile = "zodiac-fx", config = None))]
    fn add_board(
        &self,
        name: &str,
        profile: &str,
        config: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        match &*self::profile(profile)? {
            DeviceProfile::Board(profile) => {
                let config = self::config(config)?;
                self.with(|network| network.add_board(name, profile, config))
            }
            DeviceProfile::Switch(profile) => {
                let config = self::config(config)?;
                self.with(|network| network.add_switch(name, profile, &config))
            }
        }
    }

    #[pyo3(signature = (name, *, config = None))]
    fn add_controller(&self, name: &str, config: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let config = self::config(config)?;
        self.with(|network| network.add_controller(name, config))
    }

    fn add_host(&self, name: &str) -> PyResult<()> {
        self.with(|network| network.add_host(name))
    }

    #[pyo3(
        signature = (a, a_port, b, b_port, *, rate_bps = 100_000_000.0, propagation_ns = None),
        text_signature = "($self, a, a_port, b, b_port, *, rate_bps=100000000.0, propagation_ns=0)"
    )]
    fn connect(
        &self,
        a: &str,
        a_port: &Bound<'_, PyAny>,
        b: &str,
        b_port: &Bound<'_, PyAny>,
        rate_bps: f64,
        propagation_ns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (a_port, b_port) = (whole("a_port", a_port, 255)?, whole("b_port", b_port, 255)?);
        let propagation_ns =
            propagation_ns.map_or(Ok(0), |span| nanoseconds("propagation_ns", span))?;
        self.with(|network| network.connect((a, a_port), (b, b_port), rate_bps, propagation_ns))
    }

    #[pyo3(signature = (name, port, *, at_ns))]
    fn unplug(
        &self,
        name: &str,
        port: &Bound<'_, PyAny>,
        at_ns: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (port, at_ns) = (whole("port", port, 255)?, nanoseconds("at_ns", at_ns)?);
        self.with(|network| network.unplug((name, port), at_ns))
    }

    #[pyo3(signature = (name, port, *, at_ns))]
    fn plug(&self, name: &str, port: &Bound<'_, PyAny>, at_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let (port, at_ns) = (whole("port", port, 255)?, nanoseconds("at_ns", at_ns)?);
        self.with(|network| network.plug((name, port), at_ns))
    }

    #[pyo3(
        signature = (board, segments, *, spacing_ns = None, await_reply = false),
        text_signature = "($self, board, segments, *, spacing_ns=10000000, await_reply=False)"
    )]
    fn control<'py>(
        &self,
        py: Python<'py>,
        board: &str,
        segments: Vec<Vec<u8>>,
        spacing_ns: Option<&Bound<'_, PyAny>>,
        await_reply: bool,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let usual = Pace::default();
        let pace = Pace {
            spacing_ns: spacing_ns
                .map_or(Ok(usual.spacing_ns), |span| nanoseconds("spacing_ns", span))?,
            awaits_reply: await_reply,
        };
        let replies = self.with(|network| network.control_at(board, &segments, pace))?;
        Ok(replies
            .iter()
            .map(|reply| PyBytes::new(py, reply))
            .collect())
    }

    fn plan_control(
        &self,
        board: &str,
        segments: Vec<(Bound<'_, PyAny>, Vec<u8>)>,
    ) -> PyResult<()> {
        let segments = segments
            .into_iter()
            .map(|(at_ns, payload)| Ok((nanoseconds("at_ns", &at_ns)?, payload)))
            .collect::<PyResult<_>>()?;
        self.with(|network| network.plan_control(board, segments))
    }

    #[pyo3(signature = (
        host, *, flow, frame, sequence_offset, shaper_rate_bps, shaper_burst_bytes, offered_rate_bps, burst_bytes,
        queue_bytes, observed = true, destination = None
    ))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn add_source(
        &self,
        host: &str,
        flow: &Bound<'_, PyAny>,
        frame: Vec<u8>,
        sequence_offset: &Bound<'_, PyAny>,
        shaper_rate_bps: f64,
        shaper_burst_bytes: f64,
        offered_rate_bps: f64,
        burst_bytes: f64,
        queue_bytes: f64,
        observed: bool,
        destination: Option<String>,
    ) -> PyResult<()> {
        let offered = Offered::Bursts(BurstsConfig {
            offered_rate_bps,
            burst_bytes,
            queue_bytes,
        });
        let shaper = (shaper_rate_bps, shaper_burst_bytes);
        let config = source(flow, frame, sequence_offset, shaper, offered, observed)?;
        let config = SourceConfig {
            destination,
            ..config
        };
        self.with(|network| network.add_source(host, config))
    }

    #[pyo3(signature = (
        host, *, flow, frame, sequence_offset, shaper_rate_bps, shaper_burst_bytes, instants_ns, observed = true,
        destination = None
    ))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn add_pattern(
        &self,
        host: &str,
        flow: &Bound<'_, PyAny>,
        frame: Vec<u8>,
        sequence_offset: &Bound<'_, PyAny>,
        shaper_rate_bps: f64,
        shaper_burst_bytes: f64,
        instants_ns: PyReadonlyArray1<'_, i64>,
        observed: bool,
        destination: Option<String>,
    ) -> PyResult<()> {
        let instants = instants_ns.as_array();
        let instants_ns = instants
            .iter()
            .map(|at_ns| u64::try_from(*at_ns).ok())
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                wrong("instants_ns: one is negative: give nanoseconds after the run's beginning")
            })?;
        let shaper = (shaper_rate_bps, shaper_burst_bytes);
        let offered = Offered::Pattern(instants_ns);
        let config = source(flow, frame, sequence_offset, shaper, offered, observed)?;
        let config = SourceConfig {
            destination,
            ..config
        };
        self.with(|network| network.add_source(host, config))
    }

    #[pyo3(
        signature = (
            host, *, flow, frame, destination, congestion_control = "cubic", window_bytes = None, start_ns = None,
            observed = true
        ),
        text_signature = "($self, host, *, flow, frame, destination, congestion_control='cubic', window_bytes=3145728, \
                          start_ns=0, observed=True)"
    )]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn add_tcp(
        &self,
        host: &str,
        flow: &Bound<'_, PyAny>,
        frame: Vec<u8>,
        destination: String,
        congestion_control: &str,
        window_bytes: Option<&Bound<'_, PyAny>>,
        start_ns: Option<&Bound<'_, PyAny>>,
        observed: bool,
    ) -> PyResult<()> {
        let control = match congestion_control {
            "cubic" => CongestionControl::Cubic,
            "reno" => CongestionControl::Reno,
            other => {
                return Err(wrong(format!(
                    "congestion_control {other:?}: give \"cubic\" or \"reno\""
                )))
            }
        };
        let window_bytes = window_bytes.map_or(Ok(WINDOW_BYTES), |bytes| {
            whole("window_bytes", bytes, u64::from(u32::MAX))
        })?;
        let config = TcpConfig {
            flow: whole("flow", flow, i32::MAX as u64)?,
            frame,
            control,
            window_bytes,
            start_ns: start_ns.map_or(Ok(0), |at| nanoseconds("start_ns", at))?,
            observed,
            destination,
        };
        self.with(|network| network.add_tcp(host, &config))
    }

    fn begin_capture(&self) -> PyResult<()> {
        self.with(|network| {
            network.begin_capture();
            Ok(())
        })
    }

    fn captured_frames<'py>(&self, py: Python<'py>) -> PyResult<Vec<PyFrame<'py>>> {
        let frames = self.with(|network| Ok(network.captured_frames()))?;
        Ok(frames
            .into_iter()
            .map(|frame| {
                let data = PyBytes::new(py, &frame.data);
                (frame.sent_ns, frame.received_ns, frame.from, frame.to, data)
            })
            .collect())
    }

    fn captured_segments<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(String, Vec<PySegment<'py>>)>> {
        let sessions = self.with(|network| Ok(network.captured_segments()))?;
        let segment = |segment: simulator::CapturedSegment| {
            let data = PyBytes::new(py, &segment.data);
            (segment.at_ns, segment.is_from_board, data)
        };
        Ok(sessions
            .into_iter()
            .map(|(board, segments)| (board, segments.into_iter().map(segment).collect()))
            .collect())
    }

    fn now_ns(&self) -> PyResult<u64> {
        self.with(|network| Ok(network.now_ns()))
    }

    fn advance(&self, py: Python<'_>, to_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let to_ns = nanoseconds("to_ns", to_ns)?;
        py.detach(|| self.with(|network| network.advance(to_ns)))
    }

    fn connected(&self, board: &str) -> PyResult<()> {
        self.with(|network| network.connected(board))
    }

    fn disconnected(&self, board: &str) -> PyResult<()> {
        self.with(|network| network.disconnected(board))
    }

    fn segment(&self, board: &str, data: &[u8]) -> PyResult<()> {
        self.with(|network| network.segment(board, data))
    }

    fn console(&self, board: &str, typed: &[u8]) -> PyResult<()> {
        self.with(|network| network.console(board, typed))
    }

    fn set_link(&self, name: &str, port: &Bound<'_, PyAny>, is_up: bool) -> PyResult<()> {
        let port = whole("port", port, 255)?;
        self.with(|network| network.set_link((name, port), is_up))
    }

    fn send(&self, host: &str, frame: Vec<u8>, at_ns: &Bound<'_, PyAny>) -> PyResult<u64> {
        let at_ns = nanoseconds("at_ns", at_ns)?;
        self.with(|network| network.send(host, frame, at_ns))
    }

    fn outputs(&self) -> PyResult<Vec<(String, Output)>> {
        let outputs = self.with(|network| Ok(network.step_outputs()))?;
        let by_node = |output: StepOutput| (output.node.clone(), Output::from(output));
        Ok(outputs.into_iter().map(by_node).collect())
    }

    fn flows(&self, board: &str) -> PyResult<Vec<Flow>> {
        let flows = self.with(|network| Ok(network.zodiac(board)?.flows()))?;
        Ok(flows.into_iter().map(Flow::from).collect())
    }

    #[pyo3(signature = (*, duration_ns, drain_ns = None), text_signature = "($self, *, duration_ns, drain_ns=100000000)")]
    fn run(
        &self,
        py: Python<'_>,
        duration_ns: &Bound<'_, PyAny>,
        drain_ns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<RunResult> {
        let duration_ns = nanoseconds("duration_ns", duration_ns)?;
        let drain_ns = drain_ns.map_or(Ok(DRAIN_NS), |span| nanoseconds("drain_ns", span))?;
        let (result, columns) = py.detach(|| {
            let mut result = self.with(|network| network.run(duration_ns, drain_ns))?;
            let columns = Columns::of(&mut result);
            Ok::<_, PyErr>((result, columns))
        })?;
        RunResult::new(py, result, columns)
    }
}

/// A source that sends to any host.
fn source(
    flow: &Bound<'_, PyAny>,
    frame: Vec<u8>,
    sequence_offset: &Bound<'_, PyAny>,
    (shaper_rate_bps, shaper_burst_bytes): (f64, f64),
    offered: Offered,
    observed: bool,
) -> PyResult<SourceConfig> {
    Ok(SourceConfig {
        flow: whole("flow", flow, i32::MAX as u64)?,
        frame,
        sequence_offset: whole("sequence_offset", sequence_offset, u64::from(u32::MAX))?,
        shaper_rate_bps,
        shaper_burst_bytes,
        offered,
        observed,
        destination: None,
    })
}

/// Default limit of a transfer's bytes under way.
const WINDOW_BYTES: u64 = 3 << 20;

/// By default, the run goes on for 100 ms after the sources have stopped.
const DRAIN_NS: u64 = 100_000_000;

/// The observed packets, one row each.
#[derive(Default)]
struct Columns {
    flow: Vec<i32>,
    sequence: Vec<i64>,
    sent_ns: Vec<i64>,
    received_ns: Vec<i64>,
    size: Vec<i32>,
}

impl Columns {
    /// Takes the rows out of `result`.
    fn of(result: &mut simulator::RunResult) -> Self {
        let rows = result.flows.iter().map(|flow| flow.sent_ns.len()).sum();
        let mut columns = Self {
            flow: Vec::with_capacity(rows),
            sequence: Vec::with_capacity(rows),
            sent_ns: Vec::with_capacity(rows),
            received_ns: Vec::with_capacity(rows),
            size: Vec::with_capacity(rows),
        };
        for flow in &mut result.flows {
            let packets = flow.sent_ns.len();
            let id = i32::try_from(flow.flow).unwrap_or(i32::MAX); // add_source refuses larger ones
            columns.flow.extend(std::iter::repeat_n(id, packets));
            columns.sequence.extend((0i64..).take(packets));
            columns.sent_ns.append(&mut flow.sent_ns);
            columns.received_ns.append(&mut flow.received_ns);
            columns
                .size
                .extend(std::iter::repeat_n(flow.frame_bytes as i32, packets));
            (flow.sent_ns, flow.received_ns) = (Vec::new(), Vec::new());
        }
        columns
    }
}

/// Something that went wrong on a board during a run.
#[pyclass(frozen, eq, get_all, skip_from_py_object, module = "switch_emulator")]
#[derive(Clone, PartialEq)]
pub(crate) struct Event {
    at_ns: i64,
    board: String,
    text: String,
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        format!(
            "Event(at_ns={}, board={:?}, text={:?})",
            self.at_ns, self.board, self.text
        )
    }
}

/// Results of a transfer over TCP.
#[pyclass(frozen, get_all, module = "switch_emulator")]
pub(crate) struct TcpResult {
    segment_bytes: u64,
    delivered_bytes: u64,
    timeouts: u64,
    retransmitted_ns: Py<PyArray1<i64>>,
    window_at_ns: Py<PyArray1<i64>>,
    window_segments: Py<PyArray1<u64>>,
}

impl TcpResult {
    fn new(py: Python<'_>, result: simulator::TcpResult) -> Self {
        Self {
            segment_bytes: result.segment_bytes,
            delivered_bytes: result.delivered_bytes,
            timeouts: result.timeouts,
            retransmitted_ns: result.retransmitted_ns.into_pyarray(py).unbind(),
            window_at_ns: result.window_at_ns.into_pyarray(py).unbind(),
            window_segments: result.window_segments.into_pyarray(py).unbind(),
        }
    }
}

#[pymethods]
impl TcpResult {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "TcpResult(delivered_bytes={}, retransmissions={}, timeouts={}, ...)",
            self.delivered_bytes,
            self.retransmitted_ns.bind(py).len()?,
            self.timeouts
        ))
    }
}

/// The records of a run.
#[pyclass(frozen, get_all, module = "switch_emulator")]
pub(crate) struct RunResult {
    flow: Py<PyArray1<i32>>,
    sequence: Py<PyArray1<i64>>,
    sent_ns: Py<PyArray1<i64>>,
    received_ns: Py<PyArray1<i64>>,
    size: Py<PyArray1<i32>>,
    flows: Py<PyDict>,
    tcp: Py<PyDict>,
    boards: Py<PyDict>,
    packets: u64,
    unidentified: u64,
    in_flight: u64,
    lost_on_link_down: u64,
    events: Vec<Event>,
    events_omitted: u64,
    deviations: Vec<Event>,
    deviations_omitted: u64,
}

#[pymethods]
impl RunResult {
    fn __repr__(&self, py: Python<'_>) -> String {
        format!(
            "RunResult(packets={}, flows={}, boards={}, events={}, ...)",
            self.packets,
            self.flows.bind(py).len(),
            self.boards.bind(py).len(),
            self.events.len()
        )
    }
}

impl RunResult {
    fn new(py: Python<'_>, result: simulator::RunResult, columns: Columns) -> PyResult<Self> {
        let flows = PyDict::new(py);
        for flow in &result.flows {
            flows.set_item(flow.flow, flow_counters(py, flow.counters)?)?;
        }
        let tcp = PyDict::new(py);
        for transfer in result.tcp {
            tcp.set_item(transfer.flow, TcpResult::new(py, transfer))?;
        }
        let boards = PyDict::new(py);
        for board in &result.boards {
            boards.set_item(&board.name, board_counters(py, board)?)?;
        }
        let event = |event: simulator::RunEvent| Event {
            at_ns: event.at_ns,
            board: event.board,
            text: event.text,
        };
        Ok(Self {
            flow: columns.flow.into_pyarray(py).unbind(),
            sequence: columns.sequence.into_pyarray(py).unbind(),
            sent_ns: columns.sent_ns.into_pyarray(py).unbind(),
            received_ns: columns.received_ns.into_pyarray(py).unbind(),
            size: columns.size.into_pyarray(py).unbind(),
            flows: flows.unbind(),
            tcp: tcp.unbind(),
            boards: boards.unbind(),
            packets: result.packets,
            unidentified: result.unidentified,
            in_flight: result.in_flight,
            lost_on_link_down: result.lost_on_link_down,
            events: result.events.into_iter().map(event).collect(),
            events_omitted: result.events_omitted,
            deviations: result.deviations.into_iter().map(event).collect(),
            deviations_omitted: result.deviations_omitted,
        })
    }
}

fn dict<'py>(py: Python<'py>, items: &[(&str, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in items {
        dict.set_item(key, value)?;
    }
    Ok(dict)
}

fn flow_counters(py: Python<'_>, counters: simulator::FlowCounters) -> PyResult<Bound<'_, PyDict>> {
    dict(
        py,
        &[
            ("offered", counters.offered),
            ("dropped_at_sender", counters.dropped_at_sender),
            ("unsent", counters.unsent),
            ("sent", counters.sent),
            ("received", counters.received),
            ("duplicates", counters.duplicates),
            ("misdelivered", counters.misdelivered),
            ("corrupted", counters.corrupted),
            ("nonconforming", counters.nonconforming),
            ("max_delay_ns", counters.max_delay_ns),
        ],
    )
}

fn board_counters<'py>(
    py: Python<'py>,
    board: &simulator::BoardResult,
) -> PyResult<Bound<'py, PyDict>> {
    let counters = &board.counters;
    dict(
        py,
        &[
            ("received", counters.received),
            ("forwarded", counters.forwarded),
            ("bridged", counters.bridged),
            ("dropped_buffer", counters.dropped_buffer),
            ("dropped_switch", counters.dropped_switch),
            ("dropped_return", counters.dropped_return),
            ("pauses_sent", counters.pauses_sent),
            ("pauses_received", counters.pauses_received),
            ("dropped_transmit", counters.dropped_transmit),
            ("dropped_policy", counters.dropped_policy),
            ("dropped_size", counters.dropped_size),
            ("dropped_flow", counters.dropped_flow),
            ("missed", counters.missed),
            ("processed", counters.processed),
            ("native_received", counters.native_received),
            ("native_sent", counters.native_sent),
            ("ring_units_peak", counters.ring_units_peak),
            ("unconnected", board.unconnected),
        ],
    )
}
