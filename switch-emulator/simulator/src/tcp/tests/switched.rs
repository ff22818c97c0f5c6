//! Transfers through a sliced port of a switch.

use super::{config, SECOND_NS};
use crate::{
    ClassConfig, CongestionControl, DeviceProfile, HtbConfig, Network, PolicerConfig, RunResult,
    SchedulerConfig, SwitchConfig, TcpConfig, TrtcmConfig,
};

const OPEN_VSWITCH: &str = include_str!("../../../../profiles/open-vswitch-1g.toml");
const GIGABIT_BPS: f64 = 1e9;
const DURATION_NS: u64 = 600_000_000;
const RATE_BPS: u64 = 100_000_000;

/// `FLOW_MOD`: what comes in on `from` leaves by `to`.
fn flow_mod(from: u8, to: u8) -> Vec<u8> {
    let mut message = vec![0; 80];
    message[..4].copy_from_slice(&[1, 14, 0, 80]);
    message[8..12].copy_from_slice(&0x003f_fffe_u32.to_be_bytes());
    message[13] = from;
    message[64..68].copy_from_slice(&[0xff; 4]); // no buffer
    message[72..78].copy_from_slice(&[0, 0, 0, 8, 0, to]);
    message
}

/// Returns a queue of 100 Mbit/s that holds so many frames.
fn htb(limit_frames: u64, group_frames: u64) -> SchedulerConfig {
    SchedulerConfig::Htb(HtbConfig {
        classes: vec![ClassConfig {
            name: "slice".into(),
            parent: None,
            queue: 0,
            rate_bps: RATE_BPS,
            ceil_bps: RATE_BPS,
            burst_bytes: 30_000,
            cburst_bytes: 30_000,
            quantum_bytes: 1_514,
            priority: 0,
            limit_frames,
            drops: None,
        }],
        group_frames,
        timer_ns: 0,
    })
}

fn trtcm(cir_bps: u64, cbs_bytes: u64) -> SchedulerConfig {
    SchedulerConfig::Trtcm(TrtcmConfig {
        policers: vec![PolicerConfig {
            queue: 0,
            cir_bps,
            cbs_bytes,
            eir_bps: 0,
            ebs_bytes: 0,
        }],
        group_frames: 8,
        poll_ns: 24_000,
        limit_frames: 1_000,
        transmit_frames: 1_000,
    })
}

/// Returns a transfer through a gigabit port with this scheduler, over cables so long.
fn run(scheduler: SchedulerConfig, control: CongestionControl, propagation_ns: u64) -> RunResult {
    let DeviceProfile::Switch(profile) =
        DeviceProfile::from_toml(OPEN_VSWITCH).expect("the profile in the repository")
    else {
        panic!("Open vSwitch is no Zodiac FX");
    };
    let switch = SwitchConfig {
        schedulers: [(2, scheduler)].into(),
        ..SwitchConfig::default()
    };
    let mut network = Network::new(1);
    network.add_switch("s1", &profile, &switch).unwrap();
    for (host, port) in [("A", 1), ("B", 2)] {
        network.add_host(host).unwrap();
        network
            .connect((host, 1), ("s1", port), GIGABIT_BPS, propagation_ns)
            .unwrap();
    }
    network
        .control("s1", &[flow_mod(1, 2), flow_mod(2, 1)])
        .unwrap();
    let config = TcpConfig {
        observed: false,
        ..config(control)
    };
    network.add_tcp("A", &config).unwrap();
    network.run(DURATION_NS, SECOND_NS).unwrap()
}

/// All lost frames were sent again, but for the window at the end; little else was, and no timer expired. As much as
/// the rate and the contents of bucket and queue, and not much less, arrived, as the scheduler counts frames.
fn assert_repaired(result: &RunResult, counted_bytes: u64, rate_bps: u64, saved_bytes: u64) {
    let (counters, tcp) = (result.flows[0].counters, &result.tcp[0]);
    let lost = counters.sent - counters.received;
    let again = tcp.retransmitted_ns.len() as u64;
    assert_eq!(result.unidentified, 0);
    assert!(lost > 0, "nothing was lost, so that nothing is tested");
    let dropped = result.boards[0].counters;
    assert_eq!(lost, dropped.dropped_transmit + dropped.dropped_policy);
    assert!(again <= lost + lost / 20, "{again} for {lost}");
    assert_eq!(tcp.timeouts, 0);
    let delivered_bytes = tcp.delivered_bytes / 1448 * counted_bytes;
    let most_bytes = rate_bps / 8 * DURATION_NS / SECOND_NS;
    assert!(delivered_bytes <= most_bytes + saved_bytes, "{result:?}");
    assert!(
        delivered_bytes >= most_bytes * 97 / 100,
        "{delivered_bytes} of {most_bytes}"
    );
}

#[test]
fn a_full_queue_drops_and_the_rate_is_used() {
    for (control, group_frames) in super::BOTH.into_iter().zip([1, 16]) {
        let result = run(htb(200, group_frames), control, 0);
        assert_repaired(&result, 1514, RATE_BPS, 30_000 + 201 * 1514);
    }
}

#[test]
fn a_policer_drops_and_the_rate_is_used() {
    let cases = [(500_000_000, 0), (RATE_BPS, 500_000)];
    for (control, (rate_bps, propagation_ns)) in super::BOTH.into_iter().zip(cases) {
        let result = run(trtcm(rate_bps, 240_000), control, propagation_ns);
        assert_repaired(&result, 1500, rate_bps, 240_000);
    }
}

/// Where the round trip is so short that even the least window exceeds the rate, whole windows are dropped together with what
/// would tell of it. Only timers are left, and the rate is not used.
#[test]
fn a_policer_far_below_the_line_stops_a_short_path() {
    let result = run(trtcm(RATE_BPS, 240_000), CongestionControl::Cubic, 0);
    assert!(result.tcp[0].timeouts >= 2);
    assert!(result.tcp[0].delivered_bytes * 8 < RATE_BPS * DURATION_NS / SECOND_NS / 2);
}
