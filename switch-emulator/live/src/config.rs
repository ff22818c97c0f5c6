//! The configuration file of `zodiac-fx`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use zodiac_firmware::{Config as Settings, ControlCarrier, PortNumber, Profile, ZODIAC_FX};

use live_host::error::StartError;
use live_host::realtime::Scheduling;

/// Name of the profile that comes with the program.
const BUILT_IN_PROFILE: &str = "zodiac-fx";
/// Later, boards have looked for their controller.
pub(crate) const LONGEST_POWERED_MS: u64 = 1_900;
/// Where other profiles lie, seen from this crate; a checkout that was moved after the build has none.
const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../profiles");

/// A checked configuration: everything that can be known without touching the machine.
#[derive(Debug)]
pub struct ProgramConfig {
    /// The program as a whole.
    pub process: Process,
    /// The boards, in the order of the file.
    pub boards: Vec<BoardConfig>,
    /// Ports wired to each other inside the process.
    pub internal_links: Vec<[PortAddress; 2]>,
}

/// A board's port: index of the board in [`Config::boards`] and number of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortAddress {
    /// Index of the board.
    pub board: usize,
    /// Number of its port.
    pub port: PortNumber,
}

/// One board.
#[derive(Debug)]
pub struct BoardConfig {
    /// Name in logs and reports.
    pub name: String,
    /// The device's numbers.
    pub profile: Profile,
    /// Where it connects to.
    pub controller: SocketAddr,
    /// Seed of what is random about it.
    pub seed: u64,
    /// Interface of each port; the others have no link.
    pub ports: BTreeMap<PortNumber, String>,
    /// Where its serial console is: a symbolic link to a pseudo-terminal.
    pub console: Option<PathBuf>,
    /// File with what its console has saved; without it the settings count.
    pub eeprom: Option<PathBuf>,
    /// The board's own settings.
    pub settings: Settings,
}

/// The program as a whole.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// Core of the data thread; without it the kernel chooses.
    pub cpu: Option<usize>,
    /// How the data thread is scheduled.
    pub scheduling: Scheduling,
    /// Whether to refuse to start if the kernel refuses the scheduling, instead of going on with a warning.
    pub scheduling_required: bool,
    /// A longer gap between two looks at the clock counts as a stall.
    pub stall_threshold_us: u64,
    /// Longest time for which the data thread rests if nothing is due. More than the default leaves the core to other
    /// programs, such as other emulators; up to 100 us no frame of a Zodiac FX leaves late because of it.
    pub rest_us: u64,
    /// For how long the boards have had power when the program starts. They look for their controller two seconds after
    /// power-up, so labs that leave them out of sight until then need not wait.
    pub powered_for_ms: u64,
    /// How long before its departure a frame is handed to the kernel; if absent, that is measured again and again.
    pub send_lead_ns: Option<u64>,
    /// Where the report is written, at the end and on SIGUSR1.
    pub report: Option<PathBuf>,
    /// File that is created when the boards run.
    pub ready: Option<PathBuf>,
    /// CSV file for each departure, intended and real.
    pub trace: Option<PathBuf>,
    /// Place in the frame of the 32-bit number that the trace repeats. Default: first bytes of the UDP payload.
    pub trace_sequence_offset: usize,
    /// Whether interfaces may be down at the start; otherwise that is an error.
    pub links_may_be_down: bool,
    /// Whether the reports have the boards' entries, which costs the data thread time.
    pub flow_statistics: bool,
    internal_links: Vec<[String; 2]>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            cpu: None,
            scheduling: Scheduling::Deadline,
            scheduling_required: false,
            stall_threshold_us: 50,
            rest_us: 10,
            powered_for_ms: 0,
            send_lead_ns: None,
            report: None,
            ready: None,
            trace: None,
            trace_sequence_offset: 42,
            links_may_be_down: false,
            flow_statistics: false,
            internal_links: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    process: Process,
    #[serde(default)]
    board: Vec<BoardTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardTable {
    name: String,
    #[serde(default = "built_in_profile")]
    profile: String,
    controller: Option<String>,
    #[serde(default)]
    seed: u64,
    console: Option<PathBuf>,
    eeprom: Option<PathBuf>,
    #[serde(default)]
    ports: BTreeMap<String, String>,
    #[serde(default)]
    config: Settings,
}

fn built_in_profile() -> String {
    BUILT_IN_PROFILE.to_owned()
}

impl ProgramConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// One line: file, line or key, what is wrong, what is allowed.
    pub fn load(path: &Path) -> Result<Self, StartError> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            StartError::new(format!(
                "{shown}: cannot read the configuration: {error}; give the path of a TOML file"
            ))
        })?;
        Self::parse(&text, &shown.to_string())
    }

    /// Checks the text of a file; `file` names it in errors.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &str) -> Result<Self, StartError> {
        let parsed: File =
            toml::from_str(text).map_err(|error| syntax_error(text, file, &error))?;
        let refuse = |line: String| Err(StartError::new(format!("{file}: {line}")));
        if parsed.board.is_empty() {
            return refuse(
                "there is no board; add a [[board]] with name, controller and [board.ports]".into(),
            );
        }
        if parsed.process.stall_threshold_us == 0 {
            return refuse(
                "process.stall_threshold_us is 0; the smallest is 1, the default 50".into(),
            );
        }
        if !(10..=1_000).contains(&parsed.process.rest_us) {
            return refuse("process.rest_us is not between 10, the default, and 1000".into());
        }
        if parsed.process.powered_for_ms > LONGEST_POWERED_MS {
            return refuse(format!(
                "process.powered_for_ms is more than {LONGEST_POWERED_MS}; boards look for their controller 2 s after \
                 power-up, and nobody would see it"
            ));
        }
        let boards = parsed
            .board
            .into_iter()
            .map(|table| check_board(table, file))
            .collect::<Result<Vec<_>, _>>()?;
        check_names(&boards, file)?;
        let links = parsed.process.internal_links.iter();
        let internal_links = links
            .map(|ends| link(ends, &boards, file))
            .collect::<Result<Vec<_>, _>>()?;
        check_links(&internal_links, &boards, file)?;
        check_networks(&internal_links, &boards, file)?;
        Ok(Self {
            process: parsed.process,
            boards,
            internal_links,
        })
    }
}

/// "file, line n, key: reason" of an error of the TOML reader.
pub(crate) fn syntax_error(text: &str, file: &str, error: &toml::de::Error) -> StartError {
    let Some(span) = error.span() else {
        return StartError::new(format!("{file}: {}", error.message()));
    };
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let shown = text.lines().nth(line - 1).unwrap_or("").trim();
    StartError::new(format!(
        "{file}, line {line}: {}: {}",
        shown,
        error.message()
    ))
}

fn check_board(table: BoardTable, file: &str) -> Result<BoardConfig, StartError> {
    let BoardTable {
        name,
        profile,
        controller,
        seed,
        console,
        eeprom,
        ports,
        config: mut settings,
    } = table;
    let at = |key: &str| format!("{file}, board {name}, {key}");
    if name.is_empty() {
        return Err(StartError::new(format!(
            "{file}: a board's name is empty; give it one, such as s1"
        )));
    }
    let profile = load_profile(&profile, &at("profile"))?;
    let controller = check_controller(controller, &mut settings, &at("controller"))?;
    let ports = ports
        .into_iter()
        .map(|(number, interface)| {
            let known = number.parse().ok().and_then(PortNumber::new).filter(|port| {
                u64::from(port.get()) <= profile.ports.count && !interface.is_empty()
            });
            known.map(|port| (port, interface)).ok_or_else(|| {
                let (key, count) = (at("ports"), profile.ports.count);
                StartError::new(format!(
                    "{key}: `{number}` is no port with an interface; ports 1 to {count} take one each, such as 1 = \"s1-eth1\""
                ))
            })
        })
        .collect::<Result<_, _>>()?;
    let board = BoardConfig {
        name: name.clone(),
        profile,
        controller,
        seed,
        ports,
        console,
        eeprom,
        settings,
    };
    board
        .power_up()
        .map_err(|error| StartError::new(format!("{}: {error}", at("config"))))?;
    Ok(board)
}

/// Returns where the board connects to. A board on a network of its own connects by its settings, which the table may
/// give.
fn check_controller(
    controller: Option<String>,
    settings: &mut Settings,
    key: &str,
) -> Result<SocketAddr, StartError> {
    let by_settings = SocketAddrV4::new(settings.controller_address, settings.controller_port);
    let given = controller.map(|text| {
        text.parse().map_err(|_| {
            StartError::new(format!(
                "{key}: `{text}` is no address; write IP address and port, such as 127.0.0.1:6633"
            ))
        })
    });
    match (settings.control, given.transpose()?) {
        (ControlCarrier::Session, Some(controller)) => Ok(controller),
        (ControlCarrier::Session, None) => Err(StartError::new(format!(
            "{key} is missing; write IP address and port, such as 127.0.0.1:6633"
        ))),
        (ControlCarrier::Network, None) => Ok(by_settings.into()),
        (ControlCarrier::Network, Some(SocketAddr::V6(controller))) => Err(StartError::new(
            format!("{key}: {controller} is IPv6; a board on a network has IPv4 only"),
        )),
        (ControlCarrier::Network, Some(SocketAddr::V4(controller))) => {
            let factory = Settings::default();
            let factory = SocketAddrV4::new(factory.controller_address, factory.controller_port);
            if by_settings != controller && by_settings != factory {
                return Err(StartError::new(format!(
                    "{key}: {controller} contradicts controller_address and controller_port of [board.config], \
                     {by_settings}; give it once"
                )));
            }
            settings.controller_address = *controller.ip();
            settings.controller_port = controller.port();
            Ok(controller.into())
        }
    }
}

impl BoardConfig {
    /// Returns whether the board keeps its connection to the controller itself, by frames.
    #[must_use]
    pub fn is_on_network(&self) -> bool {
        self.settings.control == ControlCarrier::Network
    }

    /// Returns the board as configured, switched on.
    ///
    /// # Errors
    /// Settings that no board can have.
    pub fn power_up(&self) -> Result<zodiac_firmware::Board, zodiac_firmware::ConfigError> {
        zodiac_firmware::Board::new(&self.profile, self.settings.clone(), self.seed)
    }
}

fn load_profile(profile: &str, key: &str) -> Result<Profile, StartError> {
    if profile == BUILT_IN_PROFILE {
        return Profile::from_toml(ZODIAC_FX)
            .map_err(|error| StartError::new(format!("{key}: the built-in profile: {error}")));
    }
    let is_path = profile.contains('/') || Path::new(profile).extension().is_some();
    let path = if is_path {
        PathBuf::from(profile)
    } else {
        Path::new(PROFILES).join(format!("{profile}.toml"))
    };
    let text = fs::read_to_string(&path).map_err(|error| {
        let path = path.display();
        StartError::new(format!(
            "{key}: unknown profile `{profile}` ({path}: {error}); use {BUILT_IN_PROFILE} or the path of a TOML file"
        ))
    })?;
    Profile::from_toml(&text)
        .map_err(|error| StartError::new(format!("{key}: {}: {error}", path.display())))
}

fn check_names(boards: &[BoardConfig], file: &str) -> Result<(), StartError> {
    let mut names = BTreeSet::new();
    let mut interfaces = BTreeMap::new();
    let mut paths = BTreeMap::new();
    for board in boards {
        let name = &board.name;
        if !names.insert(name) {
            return Err(StartError::new(format!(
                "{file}: two boards are called {name}; give each its own name"
            )));
        }
        for (key, path) in [("console", &board.console), ("eeprom", &board.eeprom)] {
            let Some(path) = path else { continue };
            if let Some(other) = paths.insert(path, name) {
                return Err(StartError::new(format!(
                    "{file}, board {name}, {key}: {} is already a path of board {other}; give each its own",
                    path.display()
                )));
            }
        }
        for (port, interface) in &board.ports {
            if let Some((other, other_port)) = interfaces.insert(interface, (name, port)) {
                return Err(StartError::new(format!(
                    "{file}, board {name}, ports: interface {interface} of port {port} already is port {other_port} \
                     of board {other}; each port needs its own interface"
                )));
            }
        }
    }
    Ok(())
}

fn link(
    ends: &[String; 2],
    boards: &[BoardConfig],
    file: &str,
) -> Result<[PortAddress; 2], StartError> {
    let end = |text: &String| {
        let (name, number) = text.split_once(':')?;
        let board = boards.iter().position(|board| board.name == name)?;
        let port = PortNumber::new(number.parse().ok()?)?;
        Some(PortAddress { board, port })
    };
    let known = |text| {
        end(text).ok_or_else(|| {
            StartError::new(format!(
                "{file}, process.internal_links: `{text}` is no port of a board; write board and port, such as s1:3"
            ))
        })
    };
    Ok([known(&ends[0])?, known(&ends[1])?])
}

fn check_links(
    links: &[[PortAddress; 2]],
    boards: &[BoardConfig],
    file: &str,
) -> Result<(), StartError> {
    let mut taken = BTreeSet::new();
    for end in links.iter().flatten() {
        let board = &boards[end.board];
        if board.ports.contains_key(&end.port) || !taken.insert(*end) {
            return Err(StartError::new(format!(
                "{file}, process.internal_links: port {} of board {} is wired twice; a port has one interface or one link",
                end.port, board.name
            )));
        }
    }
    Ok(())
}

/// Boards that connect by themselves need a cable for that, and addresses of their own.
fn check_networks(
    links: &[[PortAddress; 2]],
    boards: &[BoardConfig],
    file: &str,
) -> Result<(), StartError> {
    let mut owners = BTreeMap::new();
    for (index, board) in boards.iter().enumerate() {
        let (name, settings) = (&board.name, &board.settings);
        if !board.is_on_network() {
            continue;
        }
        let wired = |port: &PortNumber| {
            let end = PortAddress {
                board: index,
                port: *port,
            };
            board.ports.contains_key(port) || links.iter().flatten().any(|other| *other == end)
        };
        if !settings.native_ports.iter().any(wired) {
            return Err(StartError::new(format!(
                "{file}, board {name}, ports: control = \"network\" needs an interface for a native port, such as 4 = \"{name}-eth4\""
            )));
        }
        for (key, address) in [
            ("mac", settings.mac.to_string()),
            ("ip_address", settings.ip_address.to_string()),
        ] {
            if let Some(other) = owners.insert((key, address.clone()), name) {
                return Err(StartError::new(format!(
                    "{file}, board {name}, config: {key} {address} is that of board {other}; give each its own"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
