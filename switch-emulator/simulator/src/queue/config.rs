//! Settings of queue disciplines. Rates count what each discipline counts; see there.

use serde::Deserialize;

/// Default limit of a queue in frames: the kernel's length of a device's transmit queue.
pub(super) const DEFAULT_LIMIT_FRAMES: u64 = 1_000;
const MAX_RATE_BPS: u64 = 1_000_000_000_000;
const MAX_BYTES: u64 = 1_000_000_000;
const MAX_NS: u64 = 1_000_000_000;
const MAX_FRAMES: u64 = 1_000_000;

/// Scheduler of a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SchedulerConfig {
    /// Hierarchical token bucket.
    Htb(HtbConfig),
    /// Two-rate three-colour marking that drops.
    Trtcm(TrtcmConfig),
}

/// A hierarchical token bucket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HtbConfig {
    /// The tree; a class comes after its parent.
    pub classes: Vec<ClassConfig>,
    /// How many frames a class takes at once: one that has run out of tokens sleeps until it can pay for so many.
    #[serde(default = "one")]
    pub group_frames: u64,
    /// How late the timer wakes a sleeping class.
    #[serde(default)]
    pub timer_ns: u64,
}

/// A class of a hierarchical token bucket; a leaf if it is nobody's parent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// Its name.
    pub name: String,
    /// The class that it borrows from.
    #[serde(default)]
    pub parent: Option<String>,
    /// Of a leaf: the number of its queue.
    #[serde(default)]
    pub queue: u32,
    /// Rate without borrowing.
    pub rate_bps: u64,
    /// Maximum rate.
    pub ceil_bps: u64,
    /// Depth of the token bucket that fills with `rate_bps`.
    pub burst_bytes: u64,
    /// Depth of the token bucket that fills with `ceil_bps`.
    pub cburst_bytes: u64,
    /// Bytes per turn among classes of its priority.
    #[serde(default = "quantum")]
    pub quantum_bytes: u64,
    /// Lower ones go first.
    #[serde(default)]
    pub priority: u8,
    /// Frames that its queue holds.
    #[serde(default = "limit")]
    pub limit_frames: u64,
    /// Active queue management of its queue.
    #[serde(default)]
    pub drops: Option<DropsConfig>,
}

/// Active queue management: drops although there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum DropsConfig {
    /// Frames that would wait for longer than this.
    Late {
        /// The longest time from coming to leaving.
        after_ns: u64,
    },
    /// Controlled delay (RFC 8289).
    Codel {
        /// The waiting time that it accepts for good.
        target_ns: u64,
        /// How long it accepts a longer waiting time.
        interval_ns: u64,
    },
}

/// Two-rate three-colour marking that drops.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrtcmConfig {
    /// The policers, one a queue.
    pub policers: Vec<PolicerConfig>,
    /// How many frames a poll takes.
    #[serde(default = "one")]
    pub group_frames: u64,
    /// From the first frame that waits to the poll, and from one poll to the next while more wait.
    pub poll_ns: u64,
    /// Frames that wait for the next poll, all queues together.
    #[serde(default = "limit")]
    pub limit_frames: u64,
    /// Frames that wait for the wire.
    #[serde(default = "limit")]
    pub transmit_frames: u64,
}

/// Buckets of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerConfig {
    /// The queue's number.
    #[serde(default)]
    pub queue: u32,
    /// Committed information rate.
    pub cir_bps: u64,
    /// Committed burst size.
    pub cbs_bytes: u64,
    /// Excess information rate; may be 0.
    #[serde(default)]
    pub eir_bps: u64,
    /// Excess burst size; may be 0.
    #[serde(default)]
    pub ebs_bytes: u64,
}

const fn one() -> u64 {
    1
}

const fn quantum() -> u64 {
    1_514
}

const fn limit() -> u64 {
    DEFAULT_LIMIT_FRAMES
}

impl HtbConfig {
    /// Checks the settings. Returns the index of each class's parent.
    pub(super) fn parents(&self) -> Result<Vec<Option<usize>>, String> {
        in_range("group_frames", self.group_frames, 1, MAX_FRAMES)?;
        in_range("timer_ns", self.timer_ns, 0, MAX_NS)?;
        let mut parents = Vec::new();
        for (place, class) in self.classes.iter().enumerate() {
            class
                .check()
                .map_err(|reason| format!("class {:?}: {reason}", class.name))?;
            let before = &self.classes[..place];
            if before.iter().any(|other| other.name == class.name) {
                return Err(format!("class {:?} is there twice: rename one", class.name));
            }
            let find = |name: &String| {
                let parent = before.iter().position(|other| other.name == *name);
                parent.map(Some).ok_or_else(|| {
                    format!(
                        "class {:?}: no class {name:?} comes before it: put its parent first",
                        class.name
                    )
                })
            };
            parents.push(class.parent.as_ref().map_or(Ok(None), find)?);
        }
        let leaf = |place: &usize| !parents.contains(&Some(*place));
        let mut queues: Vec<u32> = (0..self.classes.len())
            .filter(leaf)
            .map(|place| self.classes[place].queue)
            .collect();
        queues.sort_unstable();
        if let Some([queue, ..]) = queues.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!(
                "queue {queue} belongs to two classes: number them apart"
            ));
        }
        if queues.is_empty() {
            return Err("classes: there is none: add one".into());
        }
        Ok(parents)
    }
}

impl ClassConfig {
    fn check(&self) -> Result<(), String> {
        in_range("rate_bps", self.rate_bps, 1, MAX_RATE_BPS)?;
        in_range("ceil_bps", self.ceil_bps, self.rate_bps, MAX_RATE_BPS)?;
        in_range("burst_bytes", self.burst_bytes, 0, MAX_BYTES)?;
        in_range("cburst_bytes", self.cburst_bytes, 0, MAX_BYTES)?;
        in_range("quantum_bytes", self.quantum_bytes, 1, MAX_BYTES)?;
        in_range("priority", self.priority.into(), 0, 7)?;
        in_range("limit_frames", self.limit_frames, 1, MAX_FRAMES)?;
        match self.drops {
            None => Ok(()),
            Some(DropsConfig::Late { after_ns }) => {
                in_range("drops: after_ns", after_ns, 1, MAX_NS)
            }
            Some(DropsConfig::Codel {
                target_ns,
                interval_ns,
            }) => {
                in_range("drops: target_ns", target_ns, 1, MAX_NS)?;
                in_range("drops: interval_ns", interval_ns, 1, MAX_NS)
            }
        }
    }
}

impl TrtcmConfig {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<(), String> {
        in_range("group_frames", self.group_frames, 1, MAX_FRAMES)?;
        in_range("poll_ns", self.poll_ns, 1, MAX_NS)?;
        in_range("limit_frames", self.limit_frames, 1, MAX_FRAMES)?;
        in_range("transmit_frames", self.transmit_frames, 1, MAX_FRAMES)?;
        if self.policers.is_empty() {
            return Err("policers: there is none: add one".into());
        }
        for (place, policer) in self.policers.iter().enumerate() {
            in_range("cir_bps", policer.cir_bps, 1, MAX_RATE_BPS)?;
            in_range("cbs_bytes", policer.cbs_bytes, 1, MAX_BYTES)?;
            in_range("eir_bps", policer.eir_bps, 0, MAX_RATE_BPS)?;
            in_range("ebs_bytes", policer.ebs_bytes, 0, MAX_BYTES)?;
            let before = &self.policers[..place];
            if before.iter().any(|other| other.queue == policer.queue) {
                return Err(format!(
                    "queue {} has two policers: number them apart",
                    policer.queue
                ));
            }
        }
        Ok(())
    }
}

fn in_range(name: &str, value: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!(
            "{name} is {value}: give a number in {least} .. {most}"
        ))
    }
}
