//! How many frames a second the firmware carries on one core.
//!
//! The scenario is the Loko evaluation's: 306-byte UDP frames, 17 five-tuple entries in increasing priority, the used
//! one last, so that all are examined. `cargo run --release -p zodiac-firmware --example visits`

use std::time::Instant as Clock;

use zodiac_firmware::{
    Board, Config, Duration, Instant, OutputKind, PortNumber, Profile, ZODIAC_FX,
};

const ENTRIES: u16 = 17;
const VISITS: u64 = 5_000_000;

fn main() {
    let profile = Profile::from_toml(ZODIAC_FX).expect("the crate's own profile is right");
    let config = Config {
        ofchecks: false,
        ..Config::default()
    };
    let mut board = Board::new(&profile, config, 1).expect("the factory's settings are right");
    let mut now = install(&mut board);
    let port = PortNumber::new(1).expect("port 1 exists");
    let frame = udp_frame(ENTRIES);
    let gap = Duration::from_nanos(300_000);

    #[allow(clippy::disallowed_methods)] // a benchmark measures real time
    let begin = Clock::now();
    let mut forwarded = 0;
    for _ in 0..VISITS {
        now += gap;
        board.frame(now, port, &frame);
        if let Some(at) = board.poll_at() {
            board.advance(at);
        }
        while let Some(output) = board.poll_output() {
            if let OutputKind::Frame { data, .. } = output.kind {
                forwarded += 1;
                board.recycle(data);
            }
        }
    }
    let elapsed = begin.elapsed();
    println!(
        "{forwarded} of {VISITS} frames forwarded, {} ns a visit",
        elapsed.as_nanos() / u128::from(VISITS)
    );
    println!("{:?}", board.counters());
}

fn install(board: &mut Board) -> Instant {
    let mut now = Instant::ZERO;
    let step = Duration::from_millis(1);
    board.connected(now);
    let hello = [1, 0, 0, 8, 0, 0, 0, 1];
    for message in std::iter::once(hello.to_vec()).chain((1..=ENTRIES).map(flow_mod)) {
        now += step;
        board.segment(now, &message);
    }
    now += step;
    board.advance(now);
    while board.poll_output().is_some() {}
    assert_eq!(board.flows().len(), usize::from(ENTRIES));
    now
}

/// Returns an ADD of a five-tuple entry with this priority and destination port, that sends to port 3.
fn flow_mod(number: u16) -> Vec<u8> {
    let mut message = vec![0; 80];
    message[..4].copy_from_slice(&[1, 14, 0, 80]);
    message[8..12].copy_from_slice(&0x0030_000f_u32.to_be_bytes());
    message[30..32].copy_from_slice(&[0x08, 0x00]);
    message[33] = 17;
    message[36..40].copy_from_slice(&[10, 0, 0, 1]);
    message[40..44].copy_from_slice(&[10, 0, 0, 2]);
    message[44..46].copy_from_slice(&1000_u16.to_be_bytes());
    message[46..48].copy_from_slice(&number.to_be_bytes());
    message[62..64].copy_from_slice(&number.to_be_bytes());
    message[70..80].copy_from_slice(&[0, 0, 0, 0, 0, 8, 0, 3, 0, 0]);
    message
}

fn udp_frame(destination_port: u16) -> Vec<u8> {
    let mut frame = vec![0; 302];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[23] = 17;
    frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
    frame[30..34].copy_from_slice(&[10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&1000_u16.to_be_bytes());
    frame[36..38].copy_from_slice(&destination_port.to_be_bytes());
    frame
}
