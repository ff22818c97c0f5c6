//! Someone at the console of a board.

use zodiac_firmware::{Board, Config, Instant, Output, OutputKind, Profile, ZODIAC_FX};

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) struct Terminal {
    pub board: Board,
    pub now: u64,
    /// Outputs of the board beside text, since the last read.
    pub others: Vec<Output>,
}

impl Terminal {
    pub(crate) fn new(config: Config) -> Self {
        let profile = Profile::from_toml(ZODIAC_FX).unwrap();
        Self::of(Board::new(&profile, config, 1).unwrap())
    }

    pub(crate) fn of(mut board: Board) -> Self {
        board.advance(Instant::ZERO);
        Self {
            board,
            now: 0,
            others: Vec::new(),
        }
    }

    /// A terminal whose banner is gone, of a board that keeps its session with a silent controller.
    pub(crate) fn greeted() -> Self {
        let mut terminal = Self::new(Config {
            ofchecks: false,
            ..Config::default()
        });
        terminal.keys(b"\r");
        terminal
    }

    /// Types, waits until a save or a restart is over, and returns what is printed.
    pub(crate) fn keys(&mut self, keys: &[u8]) -> String {
        self.board.console(Instant::from_nanos(self.now), keys);
        self.run_for(2_900_000_000)
    }

    /// Waits. Returns the text printed meanwhile.
    pub(crate) fn wait(&mut self, seconds: u64) -> String {
        self.run_for(seconds * SECOND)
    }

    fn run_for(&mut self, nanos: u64) -> String {
        self.now += nanos;
        self.board.advance(Instant::from_nanos(self.now));
        let mut text = Vec::new();
        while let Some(output) = self.board.poll_output() {
            match output.kind {
                OutputKind::Console(bytes) => text.extend(bytes),
                _ => self.others.push(output),
            }
        }
        String::from_utf8(text).unwrap()
    }

    /// Enters a command. Returns the lines between its echo and the next prompt, and the prompt.
    #[track_caller]
    pub(crate) fn command(&mut self, command: &str) -> (Vec<String>, String) {
        let text = self.keys(format!("{command}\r").as_bytes());
        let answer = text.strip_prefix(&format!("{command}\r\n"));
        let answer = answer.unwrap_or_else(|| panic!("no echo of `{command}`: {text:?}"));
        assert!(
            !answer.replace("\r\n", "").contains(['\r', '\n']),
            "{text:?}"
        );
        let mut lines: Vec<String> = answer.split("\r\n").map(str::to_owned).collect();
        let prompt = lines.pop().unwrap_or_default();
        (lines, prompt)
    }

    /// Returns the only line with which a command answers.
    #[track_caller]
    pub(crate) fn line(&mut self, command: &str) -> String {
        let (lines, _) = self.command(command);
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.concat()
    }

    /// Returns the text behind `label` in the answer to a command.
    #[track_caller]
    pub(crate) fn value(&mut self, command: &str, label: &str) -> String {
        let (lines, _) = self.command(command);
        let label = format!(" {label}: ");
        let found = lines.iter().find_map(|line| line.strip_prefix(&label));
        found
            .unwrap_or_else(|| panic!("no {label} in {lines:?}"))
            .to_owned()
    }

    pub(crate) fn kinds(&mut self) -> Vec<OutputKind> {
        std::mem::take(&mut self.others)
            .into_iter()
            .map(|output| output.kind)
            .collect()
    }

    pub(crate) fn connect(&mut self) {
        self.board.connected(Instant::from_nanos(self.now));
        self.segment(&[1, 0, 0, 8, 0, 0, 0, 1]);
        self.segment(&[1, 5, 0, 8, 0, 0, 0, 2]);
        self.settle();
    }

    /// Waits until frames and segments have reached the CPU.
    pub(crate) fn settle(&mut self) {
        self.now += SECOND / 100;
        self.board.advance(Instant::from_nanos(self.now));
    }

    pub(crate) fn segment(&mut self, bytes: &[u8]) {
        self.board.segment(Instant::from_nanos(self.now), bytes);
    }
}
