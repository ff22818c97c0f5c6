//! Gets a core for the data thread and keeps others off it, as far as the kernel permits.
//!
//! One system call is unsafe code: no safe crate offers `sched_setattr(2)`.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::mem::size_of;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::mm::{mlockall, MlockAllFlags};
use rustix::thread::{sched_setaffinity, CpuSet};
use serde::Deserialize;

use crate::error::StartError;

/// `SCHED_DEADLINE` runtime, deadline and period: the whole core, in portions of 1 ms.
const PERIOD_NS: u64 = 1_000_000;
const FIFO_PRIORITY: u32 = 50;
/// Beyond this the kernel takes a core from real-time threads: 50 ms in each second by default.
const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const UNLIMITED: &str = "-1";
const RESTORE_ATTEMPTS: usize = 20;
const RESTORE_PAUSE: Duration = Duration::from_millis(10);

/// Scheduling class of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// `SCHED_DEADLINE` with runtime = deadline = period = 1 ms.
    Deadline,
    /// `SCHED_FIFO`, priority 50.
    Fifo,
    /// Ordinary scheduling: long and frequent stalls.
    Other,
}

/// The whole system's limit for real-time threads, lifted; restored when dropped.
///
/// Without this `SCHED_DEADLINE` cannot be pinned to a core, and `SCHED_FIFO` stalls for 50 ms in each second. After
/// SIGKILL it stays lifted.
#[derive(Debug)]
pub struct UnlimitedRuntime {
    before: Option<String>,
}

impl UnlimitedRuntime {
    /// Lifts the limit if that is permitted.
    #[must_use]
    pub fn obtain() -> Self {
        let before = fs::read_to_string(RT_RUNTIME)
            .ok()
            .filter(|limit| limit.trim() != UNLIMITED);
        let before = before.filter(|_| fs::write(RT_RUNTIME, UNLIMITED).is_ok());
        Self { before }
    }
}

impl Drop for UnlimitedRuntime {
    fn drop(&mut self) {
        let Some(limit) = &self.before else { return };
        // The kernel refuses until it has given up the ended thread's share, and while others need the whole core:
        // then it is theirs to restore.
        for _ in 0..RESTORE_ATTEMPTS {
            if fs::write(RT_RUNTIME, limit.trim()).is_ok() {
                return;
            }
            thread::sleep(RESTORE_PAUSE);
        }
    }
}

/// Returns whether this core exists and may be used.
///
/// # Errors
/// One line that names the cores that there are.
pub fn check_cpu(cpu: usize) -> Result<(), StartError> {
    if cpu < CpuSet::MAX_CPU && Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists() {
        return Ok(());
    }
    let present = fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    Err(StartError::new(format!(
        "process.cpu: this machine has no core {cpu}; it has {}: choose one, or leave the key out",
        present.trim()
    )))
}

/// Pins the calling thread and sets its scheduling. Returns what was obtained, for people, and a warning if it is less
/// than what was asked for.
///
/// # Errors
/// The core cannot be had, or the scheduling cannot and is `required`.
pub fn prepare_thread(
    cpu: Option<usize>,
    scheduling: Scheduling,
    required: bool,
) -> Result<(String, Option<String>), StartError> {
    let mut place = String::new();
    if let Some(cpu) = cpu {
        check_cpu(cpu)?;
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|error| {
            StartError::new(format!(
                "process.cpu: cannot use core {cpu}: {error}; choose another, or leave the key out"
            ))
        })?;
        place = format!(", core {cpu}");
    }
    // Page faults on the hot path are stalls; without permission they are merely possible.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let (name, result) = match scheduling {
        Scheduling::Deadline => ("deadline", set_deadline()),
        Scheduling::Fifo => ("fifo", set_fifo()),
        Scheduling::Other => ("other", Ok(())),
    };
    match result {
        Ok(()) => Ok((format!("{name}{place}"), None)),
        Err(error) if required => Err(StartError::new(format!(
            "process.scheduling: the kernel refuses {name}: {error}; run as root, or set scheduling_required = false"
        ))),
        Err(error) => {
            let warning = format!(
                "the kernel refuses scheduling {name} ({error}): going on with ordinary scheduling, expect stalls"
            );
            Ok((format!("other{place} ({name} refused: {error})"), Some(warning)))
        }
    }
}

/// `struct sched_attr` of `sched_setattr(2)`, first version.
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

fn set_deadline() -> io::Result<()> {
    set_scheduling(&SchedulingAttributes {
        policy: libc::SCHED_DEADLINE as u32,
        runtime_ns: PERIOD_NS,
        deadline_ns: PERIOD_NS,
        period_ns: PERIOD_NS,
        ..Default::default()
    })
}

fn set_fifo() -> io::Result<()> {
    set_scheduling(&SchedulingAttributes {
        policy: libc::SCHED_FIFO as u32,
        priority: FIFO_PRIORITY,
        ..Default::default()
    })
}

fn set_scheduling(attributes: &SchedulingAttributes) -> io::Result<()> {
    let attributes = SchedulingAttributes {
        size: size_of::<SchedulingAttributes>() as u32,
        ..*attributes
    };
    // SAFETY: the kernel reads `size` bytes from a live value of that size; 0 is the calling thread, 0 no flags.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_does_not_exist() {
        let line = check_cpu(4_000).unwrap_err().to_string();
        assert!(line.contains("no core 4000"), "{line}");
        assert!(check_cpu(0).is_ok());
    }

    #[test]
    fn ordinary_scheduling_is_always_to_be_had() {
        let (obtained, warning) = prepare_thread(None, Scheduling::Other, true).unwrap();
        assert_eq!((obtained.as_str(), warning), ("other", None));
    }
}
