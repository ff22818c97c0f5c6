//! The two-switch network of the Loko paper (fig. 16): H1 and H2 at s1, H3 and H4 at s2, each sending to its
//! mirror host; 17 five-tuple entries on each switch, the last four used, priorities increasing.

use zodiac_firmware::{Config, Profile, ZODIAC_FX};
use zodiac_simulator::{BurstsConfig, DeviceProfile, Network, Offered, SourceConfig, SwitchConfig};

/// Length of all frames, with frame check sequence.
pub(crate) const FRAME_BYTES: u16 = 306;
/// Flow identifier, sender and receiver.
pub(crate) const FLOWS: [(u32, &str, &str); 4] = [
    (0, "H1", "H3"),
    (1, "H2", "H4"),
    (2, "H3", "H1"),
    (3, "H4", "H2"),
];
const SEQUENCE_OFFSET: usize = 50;
const DUMMIES: u16 = 13;
const UDP_PORT: u16 = 5000;
const SWITCHES: [&str; 2] = ["s1", "s2"];

/// How a source sends: token bucket and offered load.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) shaper_rate_bps: f64,
    pub(crate) shaper_burst_bytes: f64,
    pub(crate) offered_rate_bps: f64,
    pub(crate) burst_bytes: f64,
}

/// Returns the fifth-rate allocation of equation 8 with N = 2, times `rate_factor`: (flows 0 and 2, flows 1 and 3).
pub(crate) fn fifth_rate(rate_factor: f64) -> [Load; 2] {
    // R/5 = 2.37 Mbit/s, B = 2316 bytes, D = 2.065 ms: r2 = 0.395 Mbit/s, b2 = 344 bytes; r1, b1 twice that.
    [(790_000.0, 688.67), (395_000.0, 344.336)].map(|(rate_bps, burst_bytes)| Load {
        shaper_rate_bps: rate_bps * rate_factor,
        shaper_burst_bytes: burst_bytes,
        offered_rate_bps: rate_bps * rate_factor,
        burst_bytes,
    })
}

/// Returns the network with its tables installed and no sources; in OpenFlow 1.3 if the boards are forced to it.
pub(crate) fn network(seed: u64, config: &Config) -> Network {
    let profile = Profile::from_toml(ZODIAC_FX).expect("the profile in the repository");
    let mut network = Network::new(seed);
    for switch in SWITCHES {
        network
            .add_board(switch, &profile, config.clone())
            .expect("a new board");
    }
    wire(&mut network, 1e8, config);
    network
}

/// Returns the same network with two ideal switches of the generic device and links of 1 Gbit/s.
#[allow(dead_code)] // the example's alone
pub(crate) fn generic_network(seed: u64) -> Network {
    let mut network = ideal_switches(seed, &SWITCHES);
    wire(&mut network, 1e9, &Config::default());
    network
}

/// Returns the same hosts at one ideal switch.
#[allow(dead_code)] // the example's alone
pub(crate) fn one_generic_switch(seed: u64) -> Network {
    let hosts = ["H1", "H2", "H3", "H4"];
    let mut network = ideal_switches(seed, &SWITCHES[..1]);
    for (port, host) in (1..).zip(hosts) {
        network.add_host(host).expect("a new host");
        network
            .connect((host, 1), (SWITCHES[0], port), 1e9, 0)
            .expect("free ports");
    }
    install(&mut network, SWITCHES[0], &hosts, &Config::default());
    network
}

#[allow(dead_code)] // the example's alone
fn ideal_switches(seed: u64, names: &[&str]) -> Network {
    const IDEAL_1G: &str = include_str!("../../../profiles/ideal-1g.toml");
    let Ok(DeviceProfile::Switch(profile)) = DeviceProfile::from_toml(IDEAL_1G) else {
        panic!("the ideal switch of the repository is a generic one");
    };
    let mut network = Network::new(seed);
    for switch in names {
        network
            .add_switch(switch, &profile, &SwitchConfig::default())
            .expect("a new switch");
    }
    network
}

/// Adds hosts, cables and entries.
fn wire(network: &mut Network, link_rate_bps: f64, config: &Config) {
    for host in ["H1", "H2", "H3", "H4"] {
        network.add_host(host).expect("a new host");
    }
    let cables = [
        ("H1", 1, "s1", 1),
        ("H2", 1, "s1", 2),
        ("H3", 1, "s2", 1),
        ("H4", 1, "s2", 2),
        ("s1", 3, "s2", 3),
    ];
    for (a, a_port, b, b_port) in cables {
        network
            .connect((a, a_port), (b, b_port), link_rate_bps, 0)
            .expect("free ports");
    }
    for (switch, local) in [("s1", ["H1", "H2"]), ("s2", ["H3", "H4"])] {
        install(network, switch, &local, config);
    }
}

/// Fills a switch's table. The hosts at its ports are in order; all others are behind port 3.
fn install(network: &mut Network, switch: &str, local: &[&str], config: &Config) {
    let (mut segments, flow_mod) = opening(config);
    segments.extend(
        (0..DUMMIES).map(|entry| flow_mod(entry, 0, [192, 168, 0, 1], [192, 168, 0, 2], 1)),
    );
    for (entry, (flow, from, to)) in (DUMMIES..).zip(FLOWS) {
        let port = local
            .iter()
            .position(|host| *host == to)
            .map_or(3, |index| index as u16 + 1);
        segments.push(flow_mod(
            entry,
            flow as u16,
            address(from),
            address(to),
            port,
        ));
    }
    network
        .control(switch, &segments)
        .expect("a switch before its run");
}

/// A ring of `boards` boards, each with a host that sends to its neighbours' hosts: each packet passes two boards, and
/// each board carries four flows by the last of 17 entries, as the two switches do. The hosts send at the fifth-rate allocation.
#[allow(dead_code)] // the example's alone
pub(crate) fn ring(seed: u64, boards: u16, config: &Config) -> Network {
    let profile = Profile::from_toml(ZODIAC_FX).expect("the profile in the repository");
    let mut network = Network::new(seed);
    let host = |index: u16| format!("h{index}");
    let board = |index: u16| format!("b{index}");
    for index in 0..boards {
        let added = network.add_board(&board(index), &profile, config.clone());
        added.expect("a new board");
        network.add_host(&host(index)).expect("a new host");
    }
    for index in 0..boards {
        let next = board((index + 1) % boards);
        for (a, b) in [((host(index), 1), 1), ((next, 3), 2)] {
            let (end, port) = ((board(index), b), (a.0.as_str(), a.1));
            let laid = network.connect(port, (&end.0, end.1), 1e8, 0);
            laid.expect("free ports");
        }
    }
    for index in 0..boards {
        let (next, previous) = ((index + 1) % boards, (index + boards - 1) % boards);
        let (hello, add) = opening(config);
        let dummies =
            (0..DUMMIES).map(|entry| add(entry, 0, [192, 168, 0, 1], [192, 168, 0, 2], 1));
        let ways = [
            (index, next, 2),
            (index, previous, 3),
            (previous, index, 1),
            (next, index, 1),
        ];
        let used = (DUMMIES..).zip(ways).map(|(entry, (from, to, port))| {
            add(entry, 0, ring_address(from), ring_address(to), port)
        });
        let segments: Vec<_> = hello.into_iter().chain(dummies).chain(used).collect();
        let installed = network.control(&board(index), &segments);
        installed.expect("a board before its run");
        let load = fifth_rate(1.0)[0];
        for (flow, to) in [(2 * index, next), (2 * index + 1, previous)] {
            let mut frame = frame(0, "H1", "H2");
            frame[26..30].copy_from_slice(&ring_address(index));
            frame[30..34].copy_from_slice(&ring_address(to));
            let source = source(flow.into(), frame, load, true, &host(to));
            let added = network.add_source(&host(index), source);
            added.expect("a source that can send");
        }
    }
    network
}

fn ring_address(host: u16) -> [u8; 4] {
    let [high, low] = host.to_be_bytes();
    [10, 1, high, low]
}

/// Returns the controller's first messages, and the maker of its `FLOW_MOD`s.
fn opening(config: &Config) -> (Vec<Vec<u8>>, FlowMod) {
    let (version, flow_mod): (u8, FlowMod) = match config.openflow_version {
        4 => (4, flow_mod_13),
        _ => (1, flow_mod),
    };
    let segments = [
        [version, 0, 0, 8, 0, 0, 0, 1],
        [version, 5, 0, 8, 0, 0, 0, 2],
    ];
    (segments.map(Vec::from).into(), flow_mod)
}

/// Adds the four sources, flows 0 and 2 with the first load, 1 and 3 with the second.
pub(crate) fn add_sources(network: &mut Network, loads: [Load; 2], observed: bool) {
    for (flow, from, to) in FLOWS {
        let load = loads[flow as usize % 2];
        let frame = frame(flow as u16, from, to);
        network
            .add_source(from, source(flow, frame, load, observed, to))
            .expect("a source that can send");
    }
}

fn source(flow: u32, frame: Vec<u8>, load: Load, observed: bool, to: &str) -> SourceConfig {
    SourceConfig {
        flow,
        frame,
        sequence_offset: SEQUENCE_OFFSET,
        shaper_rate_bps: load.shaper_rate_bps,
        shaper_burst_bytes: load.shaper_burst_bytes,
        offered: Offered::Bursts(BurstsConfig {
            offered_rate_bps: load.offered_rate_bps,
            burst_bytes: load.burst_bytes,
            queue_bytes: 50.0 * f64::from(FRAME_BYTES),
        }),
        observed,
        destination: Some(to.into()),
    }
}

/// Returns the board of the paper: housekeeping switched off (section 3.1).
pub(crate) fn paper_config() -> Config {
    Config {
        ofchecks: false,
        ..Config::default()
    }
}

fn address(host: &str) -> [u8; 4] {
    [10, 0, 0, host.as_bytes()[1] - b'0']
}

fn frame(flow: u16, from: &str, to: &str) -> Vec<u8> {
    let mut frame = vec![0; usize::from(FRAME_BYTES) - 4];
    frame[5] = address(to)[3];
    frame[11] = address(from)[3];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&(FRAME_BYTES - 18).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..30].copy_from_slice(&address(from));
    frame[30..34].copy_from_slice(&address(to));
    frame[34..36].copy_from_slice(&(UDP_PORT + flow).to_be_bytes());
    frame[36..38].copy_from_slice(&(UDP_PORT + flow).to_be_bytes());
    frame[38..40].copy_from_slice(&(FRAME_BYTES - 38).to_be_bytes());
    frame
}

/// Makes the message that adds an entry: priority, flow, from, to, port.
type FlowMod = fn(u16, u16, [u8; 4], [u8; 4], u16) -> Vec<u8>;

/// Returns the same of OpenFlow 1.3.
fn flow_mod_13(priority: u16, flow: u16, from: [u8; 4], to: [u8; 4], port: u16) -> Vec<u8> {
    let udp_port = (UDP_PORT + flow).to_be_bytes();
    let fields: [(u8, &[u8]); 6] = [
        (5, &[8, 0]),
        (10, &[17]),
        (11, &from),
        (12, &to),
        (15, &udp_port),
        (16, &udp_port),
    ];
    let mut message = vec![0; 48];
    message[..4].copy_from_slice(&[4, 14, 0, 120]);
    message[30..32].copy_from_slice(&(priority + 1).to_be_bytes());
    message[32..44].fill(0xff);
    message.extend([0, 1, 0, 43]);
    for (field, value) in fields {
        message.extend([0x80, 0, field << 1, value.len() as u8]);
        message.extend(value);
    }
    message.resize(96, 0);
    message.extend([0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0]);
    message.extend(port.to_be_bytes());
    message.resize(120, 0);
    message
}

/// `OFPT_FLOW_MOD`: add an entry that matches a UDP five-tuple and outputs to `port`.
fn flow_mod(priority: u16, flow: u16, from: [u8; 4], to: [u8; 4], port: u16) -> Vec<u8> {
    let mut message = vec![0; 80];
    message[..4].copy_from_slice(&[1, 14, 0, 80]);
    // All wildcards but dl_type, nw_proto, nw_src, nw_dst, tp_src, tp_dst.
    message[8..12].copy_from_slice(&0x0030_000f_u32.to_be_bytes());
    message[30..32].copy_from_slice(&[8, 0]);
    message[33] = 17;
    message[36..40].copy_from_slice(&from);
    message[40..44].copy_from_slice(&to);
    message[44..46].copy_from_slice(&(UDP_PORT + flow).to_be_bytes());
    message[46..48].copy_from_slice(&(UDP_PORT + flow).to_be_bytes());
    message[62..64].copy_from_slice(&(priority + 1).to_be_bytes());
    message[64..68].copy_from_slice(&u32::MAX.to_be_bytes());
    message[68..70].copy_from_slice(&0xffff_u16.to_be_bytes());
    message[74..76].copy_from_slice(&8_u16.to_be_bytes());
    message[76..78].copy_from_slice(&port.to_be_bytes());
    message
}
