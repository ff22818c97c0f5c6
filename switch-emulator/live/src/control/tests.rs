use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant as Deadline;

use super::*;

const PATIENCE: Timeout = Timeout::from_secs(30);

struct Bench {
    listener: TcpListener,
    port: ControlPort,
    lines: mpsc::Receiver<Line>,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
}

impl Bench {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (sender, lines) = mpsc::channel();
        let controllers = [listener.local_addr().unwrap()];
        let (control, mut ports) =
            Control::new(Clock::start(), &controllers, &News::default(), sender).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (waker, flag) = (control.waker(), Arc::clone(&stop));
        let thread = Some(thread::spawn(move || control.run(&flag)));
        Self {
            listener,
            port: ports.remove(0),
            lines,
            stop,
            waker,
            thread,
        }
    }

    fn command(&mut self, command: Command) {
        self.port.command(command).unwrap();
    }

    #[track_caller]
    fn notice(&mut self) -> Notice {
        let deadline = Deadline::now() + PATIENCE;
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
        self.lines.recv_timeout(PATIENCE).expect("a line").text
    }

    #[track_caller]
    fn connect(&mut self, number: SessionNumber) -> TcpStream {
        self.command(Command::Connect(number, None));
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
    bench.command(Command::Send(b"hello".to_vec()));
    let mut bytes = [0; 5];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    peer.write_all(&[1, 0, 0, 8, 0, 0, 0, 9]).unwrap();
    assert!(
        matches!(bench.notice(), Notice::Segment(1, segment) if segment == [1, 0, 0, 8, 0, 0, 0, 9])
    );
}

#[test]
fn a_controller_that_closes_and_comes_back() {
    let mut bench = Bench::new();
    drop(bench.connect(1));
    assert!(matches!(bench.notice(), Notice::Disconnected(1)));
    assert!(bench.line().ends_with("closed the connection"));
    let _peer = bench.connect(2);
}

#[test]
fn a_controller_that_resets() {
    let mut bench = Bench::new();
    let peer = Socket::from(bench.connect(1));
    peer.set_linger(Some(Timeout::ZERO)).unwrap();
    drop(peer);
    assert!(matches!(bench.notice(), Notice::Disconnected(1)));
    assert!(bench.line().ends_with("reset the connection"));
}

#[test]
fn the_board_closes() {
    let mut bench = Bench::new();
    let mut peer = bench.connect(1);
    bench.command(Command::Close);
    assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
    assert!(bench.line().starts_with("board closed the connection"));
}

#[test]
fn a_refusal_is_told_once_until_it_ends() {
    let mut bench = Bench::new();
    let address = bench.listener.local_addr().unwrap();
    // The port stays taken, but nobody listens.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    drop(std::mem::replace(&mut bench.listener, other));
    for number in 1..=3 {
        bench.command(Command::Connect(number, None));
        thread::sleep(Timeout::from_millis(20));
    }
    assert!(bench.line().contains("Connection refused"));
    bench.listener = TcpListener::bind(address).unwrap();
    // On a busy machine an earlier attempt may be late, and succeed.
    bench.command(Command::Connect(4, None));
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
        self.command(Command::Connect(number, None));
        let (peer, _) = self.listener.accept().unwrap();
        assert!(self.line().starts_with("board gave up the connection"));
        assert!(matches!(self.notice(), Notice::Connected(n) if n == number));
        assert!(self.line().starts_with("connected to controller"));
        peer
    }
}
