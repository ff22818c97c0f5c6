//! The program `zodiac-fx`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use live_host::error::{RunError, StartError};
use rustix::process::{getppid, set_parent_process_death_signal, Signal};
use zodiac_firmware::Duration;
use zodiac_live::config::ProgramConfig;
use zodiac_live::{delay_line, host_noise, supervisor};

const EXAMPLE: &str = r#"Example:
  zodiac-fx run lab.toml        with lab.toml:

    [process]
    cpu = 1                           # core of the data thread
    scheduling = "deadline"           # deadline | fifo | other
    report = "/tmp/report.json"       # written at the end and on SIGUSR1
    ready = "/tmp/ready"              # created when the boards run

    [[board]]
    name = "s1"
    controller = "127.0.0.1:6633"
    console = "/tmp/s1-console"       # serial console: link to a pseudo-terminal
    eeprom = "/tmp/s1.eeprom"         # what the console's save keeps
    [board.ports]                     # data ports; the others have no link
    1 = "s1-eth1"
    2 = "s1-eth2"
    [board.config]                    # the board's settings
    mac = "70:b3:d5:6c:00:01"

More keys of [process]: scheduling_required, stall_threshold_us, powered_for_ms, send_lead_ns, trace, trace_sequence_offset,
flow_statistics, links_may_be_down, internal_links. SIGTERM and SIGINT end the program with exit status 0.
kernel.sched_rt_runtime_us is -1 meanwhile."#;

/// Emulated Zodiac FX switches on real interfaces, in real time
#[derive(Parser)]
#[command(name = "zodiac-fx", version, after_help = EXAMPLE)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the boards until SIGTERM or SIGINT
    #[command(after_help = EXAMPLE)]
    Run {
        /// Configuration file (TOML)
        config: PathBuf,
        /// End with SIGTERM when the starting process ends, however it ends
        #[arg(long)]
        die_with_parent: bool,
    },
    /// Check a configuration without touching interfaces or the network
    #[command(after_help = EXAMPLE)]
    Check {
        /// Configuration file (TOML)
        config: PathBuf,
    },
    /// Send by time slots and receive, on interfaces of this machine; prints JSON, writes a row for each frame
    #[command(
        after_help = "Example:\n  zodiac-fx slots slots.toml        docs/tssdn.md says what is in the file"
    )]
    Slots {
        /// Configuration file (TOML)
        config: PathBuf,
    },
    /// Hold the frames of a software switch until a device would have sent them; until SIGTERM or SIGINT
    #[command(
        after_help = "Example:\n  zodiac-fx hold hold.toml        docs/stand-in.md says what is in the file"
    )]
    Hold {
        /// Configuration file (TOML)
        config: PathBuf,
    },
    /// Measure how often this host keeps a data thread from running; prints JSON
    #[command(after_help = "Example:\n  zodiac-fx noise --cpu 1 --seconds 10")]
    Noise {
        /// Core to measure; without it the kernel chooses
        #[arg(long)]
        cpu: Option<usize>,
        /// How long
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
        seconds: u64,
        /// A longer gap between two looks at the clock is a stall
        #[arg(long, default_value_t = 50)]
        threshold_us: u64,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run {
            config,
            die_with_parent,
        } => run(&config, die_with_parent),
        Command::Check { config } => check(&config),
        Command::Slots { config } => slots_of(&config),
        Command::Hold { config } => hold(&config),
        Command::Noise {
            cpu,
            seconds,
            threshold_us,
        } => noise(cpu, seconds, threshold_us),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zodiac-fx: {error}");
            match error {
                RunError::Start(_) => ExitCode::from(2),
                RunError::Ended(_) => ExitCode::from(1),
            }
        }
    }
}

fn run(config: &std::path::Path, die_with_parent: bool) -> Result<(), RunError> {
    if die_with_parent {
        end_with_parent()?;
    }
    supervisor::run(&ProgramConfig::load(config)?)
}

fn check(path: &std::path::Path) -> Result<(), RunError> {
    let config = ProgramConfig::load(path)?;
    let boards: Vec<_> = config
        .boards
        .iter()
        .map(|board| board.name.as_str())
        .collect();
    println!(
        "{}: in order; boards: {}",
        path.display(),
        boards.join(", ")
    );
    Ok(())
}

fn noise(cpu: Option<usize>, seconds: u64, threshold_us: u64) -> Result<(), RunError> {
    end_with_parent()?;
    let measured = host_noise::measure(
        cpu,
        Duration::from_millis(seconds * 1_000),
        Duration::from_micros(threshold_us),
    )?;
    print_json(&measured)
}

fn hold(config: &std::path::Path) -> Result<(), RunError> {
    end_with_parent()?;
    delay_line::run(config)
}

fn slots_of(config: &std::path::Path) -> Result<(), RunError> {
    end_with_parent()?;
    print_json(&slot_sender::run(&slot_sender::SlotsConfig::load(config)?)?)
}

fn print_json(value: &impl serde::Serialize) -> Result<(), RunError> {
    let text = serde_json::to_string(value)
        .map_err(|error| RunError::Ended(format!("cannot write JSON: {error}")))?;
    println!("{text}");
    Ok(())
}

fn end_with_parent() -> Result<(), StartError> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|error| {
        StartError::new(format!(
            "--die-with-parent: the kernel refuses: {error}; leave it out"
        ))
    })?;
    // The parent may have ended before the kernel knew.
    if getppid() != parent {
        return Err(StartError::new(
            "--die-with-parent: the starting process has ended already",
        ));
    }
    Ok(())
}
