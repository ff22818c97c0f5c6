use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant as Deadline;

use super::*;

/// A thread that has no core for a while is no fault.
const LINE_TIMEOUT: Timeout = Timeout::from_secs(60);

struct Bench {
    listener: TcpListener,
    /// Reserves the port while nobody listens: bound, so that the system assigns it to nobody else.
    _port: Socket,
    port: ControlPort,
    lines: mpsc::Receiver<Line>,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
}

impl Bench {
    fn new() -> Self {
        Self::with(Quirks::Firmware)
    }

    fn with(quirks: Quirks) -> Self {
        let reserved = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        reserved.set_reuse_address(true).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        reserved.bind(&any.into()).unwrap();
        let address = reserved.local_addr().unwrap().as_socket().unwrap();
        let listener = TcpListener::bind(address).unwrap();
        let (sender, lines) = mpsc::channel();
        let controllers = [(listener.local_addr().unwrap(), quirks)];
        let (control, mut ports) = ControllerLinks::new(
            Clock::start(),
            &controllers,
            &PendingFlag::default(),
            sender,
        )
        .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (waker, flag) = (control.waker(), Arc::clone(&stop));
        let thread = Some(thread::spawn(move || control.run(&flag)));
        Self {
            listener,
            _port: reserved,
            port: ports.remove(0),
            lines,
            stop,
            waker,
            thread,
        }
    }

    fn command(&mut self, command: ControlCommand) {
        self.port.command(command).unwrap();
    }

    #[track_caller]
    fn notice(&mut self) -> Notice {
        let deadline = Deadline::now() + LINE_TIMEOUT;
        loop {
            if let Some(notice) = self.port.notice() {
                return notice;
            }
            assert!(Deadline::now() < deadline, "no notice");
            thread::sleep(Timeout::from_millis(1));
        }
    }

    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(LINE_TIMEOUT).expect("a line").text
    }

    #[track_caller]
    fn connect(&mut self, number: SessionNumber) -> TcpStream {
        self.command(ControlCommand::Connect(number, None));
        let (peer, _) = self.listener.accept().unwrap();
        assert!(matches!(self.notice(), Notice::Connected(n) if n == number));
        assert!(self
            .line()
            .starts_with("connected to controller 127.0.0.1:"));
        peer
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.waker.wake();
        let ended = self
            .thread
            .take()
            .map(|thread| thread.join().map(|result| result.is_ok()));
        if !thread::panicking() {
            assert!(matches!(ended, Some(Ok(true))), "{ended:?}");
        }
    }
}

#[test]
fn messages_pass_both_ways() {
    let mut bench = Bench::new();
    let mut peer = bench.connect(1);
    bench.command(ControlCommand::Send(b"hello".to_vec()));
    let mut bytes = [0; 5];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    peer.write_all(&[1, 0, 0, 8, 0, 0, 0, 9]).unwrap();
    assert!(
        matches!(bench.notice(), Notice::Segment(1, segment) if segment == [1, 0, 0, 8, 0, 0, 0, 9])
    );
}

/// A long message is logged only on the firmware, which loses it; the specification's switch answers it.
#[test]
fn a_long_message_is_told_of_only_where_it_is_lost() {
    let echo = [
        &[1, 2, 608_u16.to_be_bytes()[0], 608_u16.to_be_bytes()[1]][..],
        &[0; 604],
    ]
    .concat();
    for (quirks, told) in [
        (Quirks::Firmware, "a message of 608 bytes"),
        (Quirks::Spec, "bytes from the controller are no"),
    ] {
        let mut bench = Bench::with(quirks);
        let mut peer = bench.connect(1);
        peer.write_all(&echo).unwrap();
        let mut taken = 0;
        while taken < echo.len() {
            match bench.notice() {
                Notice::Segment(1, segment) => taken += segment.len(),
                notice => panic!("{notice:?}"),
            }
        }
        peer.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let line = bench.line();
        assert!(line.starts_with(told), "{line}");
    }
}

/// A thread that comes late reads several writes of the controller at once: each came in a segment of its own. What the
/// controller wrote at once stays one.
#[test]
fn what_was_sent_apart_is_handed_over_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let controllers = [(listener.local_addr().unwrap(), Quirks::Firmware)];
    let (log, _lines) = mpsc::channel();
    let (mut control, mut ports) =
        ControllerLinks::new(Clock::start(), &controllers, &PendingFlag::default(), log).unwrap();
    let (mut port, mut buffer) = (ports.remove(0), vec![0; READ_BYTES]);
    port.command(ControlCommand::Connect(1, None)).unwrap();
    control.turn(&mut buffer).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.set_nodelay(true).unwrap();
    let connected = port.notice().or_else(|| {
        control.turn(&mut buffer).unwrap();
        port.notice()
    });
    assert!(matches!(connected, Some(Notice::Connected(1))));

    let hello = [4, 0, 0, 8, 0, 0, 0, 1];
    let features = [4, 5, 0, 8, 0, 0, 0, 2];
    let both = [hello, features].concat();
    let full = hello.repeat(SEGMENT_BYTES / hello.len());
    let writes: [&[&[u8]]; 5] = [
        &[&hello, &features],
        &[&both],
        &[&hello, &hello, &both],
        &[&full],
        &[&both],
    ];
    for (write, expected) in writes.iter().zip([2, 1, 3, 1, 1]) {
        for part in *write {
            peer.write_all(part).unwrap();
        }
        control.turn(&mut buffer).unwrap();
        let segments: Vec<_> = std::iter::from_fn(|| port.notice()).collect();
        assert_eq!(segments.len(), expected, "{segments:?}");
        for (segment, part) in segments.iter().zip(*write) {
            assert!(matches!(segment, Notice::Segment(1, bytes) if bytes == part));
        }
    }
}

#[test]
fn a_controller_that_closes_and_comes_back() {
    let mut bench = Bench::new();
    drop(bench.connect(1));
    assert!(matches!(bench.notice(), Notice::Finished(1)));
    assert!(bench.line().ends_with("closed the connection"));
    let _peer = bench.connect(2);
}

#[test]
fn a_controller_that_resets() {
    let mut bench = Bench::new();
    reset(bench.connect(1));
    assert!(matches!(bench.notice(), Notice::Reset(1)));
    assert!(bench.line().ends_with("reset the connection"));
}

fn reset(peer: TcpStream) {
    Socket::from(peer).set_linger(Some(Timeout::ZERO)).unwrap();
}

#[test]
fn the_board_s_half_stays_open_until_it_connects_again() {
    let mut bench = Bench::new();
    let mut peer = bench.connect(1);
    peer.shutdown(Shutdown::Write).unwrap();
    assert!(matches!(bench.notice(), Notice::Finished(1)));
    assert!(bench.line().ends_with("closed the connection"));
    bench.command(ControlCommand::Send(b"hello".to_vec()));
    let mut bytes = [0; 5];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    let _next = bench.connect(2);
    assert_eq!(peer.read(&mut bytes).unwrap(), 0);
}

#[test]
fn a_controller_that_closes_and_then_resets() {
    let mut bench = Bench::new();
    let peer = bench.connect(1);
    peer.shutdown(Shutdown::Write).unwrap();
    assert!(matches!(bench.notice(), Notice::Finished(1)));
    reset(peer);
    assert!(matches!(bench.notice(), Notice::Reset(1)));
    // Told once.
    assert!(bench.line().ends_with("closed the connection"));
    let _peer = bench.connect(2);
}

/// Also when both have come before the thread looks, and the board has something to send.
#[test]
fn a_reset_does_not_hide_the_end_before_it() {
    let mut bench = Bench::new();
    for number in 1..=20 {
        let peer = bench.connect(number);
        peer.shutdown(Shutdown::Write).unwrap();
        reset(peer);
        bench.command(ControlCommand::Send(b"hello".to_vec()));
        assert!(matches!(bench.notice(), Notice::Finished(n) if n == number));
        assert!(matches!(bench.notice(), Notice::Reset(n) if n == number));
        assert!(bench.line().ends_with("closed the connection"));
    }
}

#[test]
fn the_board_closes_behind_what_it_has_sent() {
    let mut bench = Bench::new();
    let mut peer = bench.connect(1);
    bench.command(ControlCommand::Send(b"last".to_vec()));
    bench.command(ControlCommand::Close);
    let mut bytes = Vec::new();
    peer.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"last");
    assert!(bench.line().starts_with("board closed the connection"));
}

/// Data that the controller sends to a board that has closed is lost; its own end is not.
#[test]
fn the_controller_ends_behind_the_board() {
    for resets in [false, true] {
        let mut bench = Bench::new();
        let mut peer = bench.connect(1);
        bench.command(ControlCommand::Close);
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
        peer.write_all(&[1, 2, 0, 8, 0, 0, 0, 1]).unwrap();
        if resets {
            reset(peer);
            assert!(matches!(bench.notice(), Notice::Reset(1)));
        } else {
            drop(peer);
            assert!(matches!(bench.notice(), Notice::Finished(1)));
        }
        assert!(bench.line().starts_with("board closed the connection"));
        let _peer = bench.connect(2);
    }
}

#[test]
fn a_refusal_is_told_once_until_it_ends() {
    let mut bench = Bench::new();
    let address = bench.listener.local_addr().unwrap();
    // The port stays reserved, but nobody listens.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    drop(std::mem::replace(&mut bench.listener, other));
    for number in 1..=3 {
        bench.command(ControlCommand::Connect(number, None));
        thread::sleep(Timeout::from_millis(20));
    }
    assert!(bench.line().contains("Connection refused"));
    bench.listener = TcpListener::bind(address).unwrap();
    // On a busy machine an earlier attempt may be late, and succeed.
    bench.command(ControlCommand::Connect(4, None));
    while !matches!(bench.notice(), Notice::Connected(4)) {}
    let next = bench.line();
    assert!(next.starts_with("connected to controller"), "{next}");
}

#[test]
fn a_late_segment_belongs_to_its_own_session() {
    let mut bench = Bench::new();
    let mut first = bench.connect(1);
    first.write_all(&[1, 2, 0, 8, 0, 0, 0, 1]).unwrap();
    assert!(matches!(bench.notice(), Notice::Segment(1, _)));
    let mut second = bench.connect_again(2);
    second.write_all(&[1, 2, 0, 8, 0, 0, 0, 2]).unwrap();
    assert!(matches!(bench.notice(), Notice::Segment(2, _)));
}

impl Bench {
    #[track_caller]
    fn connect_again(&mut self, number: SessionNumber) -> TcpStream {
        self.command(ControlCommand::Connect(number, None));
        let (peer, _) = self.listener.accept().unwrap();
        assert!(self.line().starts_with("board gave up the connection"));
        assert!(matches!(self.notice(), Notice::Connected(n) if n == number));
        assert!(self.line().starts_with("connected to controller"));
        peer
    }
}
