//! Meters: eight, each with a window of twenty samples (quirks 114 to 117, 174 to 180).

use crate::block_pool::{BlockPool, PoolBlock};
use of_switch::v1_3::Metered;
use openflow::bytes::{be16, be32};
use openflow::v1_3::error;
use openflow::v1_3::meter::{band, flag, ALL};

/// Meters of the board.
pub(super) const METERS: usize = 8;
/// Bands of a meter.
pub(super) const BANDS: usize = 3;
/// Bytes of a meter's block beside its bands.
const METER_BYTES: usize = 40;
/// A band in a message, and in a block.
const BAND_BYTES: usize = 16;
/// Head of a `METER_MOD`.
const METER_MOD_BYTES: usize = 16;
/// Where a block holds the counters: what an earlier owner left there counts (quirk 116).
const PACKETS_AT: usize = 8;
const BYTES_AT: usize = 16;

/// One band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Band {
    pub(super) kind: u16,
    pub(super) rate: u32,
    pub(super) burst: u32,
    precedence: u8,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// One meter.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) id: u32,
    pub(super) flags: u16,
    pub(super) bands: Vec<Band>,
    block: PoolBlock,
    /// Milliseconds since power-up.
    pub(super) added_ms: u64,
}

/// Sums over the frames of a few milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    start_ms: u64,
    bytes: u16,
    packets: u16,
}

const SAMPLES: usize = 20;
/// Frames that come within this time of a sample's beginning belong to it.
const SAMPLE_MS: u64 = 3;

/// The window of one position of the table; never cleared (quirk 179).
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    samples: [Sample; SAMPLES],
    latest: usize,
}

impl Window {
    /// Returns the rate of the window at `now_ms`, in the unit of the bands' rates.
    fn rate(&self, flags: u16, now_ms: u64) -> u64 {
        let sum = |count: fn(&Sample) -> u16| {
            self.samples
                .iter()
                .map(|s| u64::from(count(s)))
                .sum::<u64>()
        };
        let oldest = &self.samples[(self.latest + 1) % SAMPLES];
        let span_ms = now_ms.saturating_sub(oldest.start_ms);
        let units: u64 = if flags & flag::KBPS != 0 {
            8 * sum(|sample| sample.bytes)
        } else {
            1_000 * sum(|sample| sample.packets)
        };
        units.checked_div(span_ms).unwrap_or(0)
    }

    /// A frame has passed.
    fn enter(&mut self, bytes: usize, now_ms: u64) {
        let sample = &mut self.samples[self.latest];
        if sample.start_ms + SAMPLE_MS >= now_ms {
            sample.bytes = sample.bytes.wrapping_add(bytes as u16);
            sample.packets = sample.packets.wrapping_add(1);
        } else {
            self.latest = (self.latest + 1) % SAMPLES;
            // The first packet of a sample is not counted (quirk 175).
            self.samples[self.latest] = Sample {
                start_ms: now_ms,
                bytes: bytes as u16,
                packets: 0,
            };
        }
    }
}

/// The meters.
#[derive(Debug, Default)]
pub(super) struct Meters {
    list: Vec<Meter>,
    windows: [Window; METERS],
}

impl Meters {
    /// Removes all meters. The pool is the caller's.
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    pub(super) fn list(&self) -> &[Meter] {
        &self.list
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.list.iter().position(|meter| meter.id == id)
    }

    /// Carries out a `METER_MOD` of `length` bytes at the beginning of `bytes`. Returns type and code of the error if
    /// it is refused.
    pub(super) fn modify(
        &mut self,
        pool: &mut BlockPool,
        bytes: &[u8],
        length: usize,
        now_ms: u64,
    ) -> Result<(), (u16, u16)> {
        let (flags, id) = (be16(bytes, 10), be32(bytes, 12));
        let count = length.saturating_sub(METER_MOD_BYTES) / BAND_BYTES;
        let bands = || {
            let at = |i: usize| METER_MOD_BYTES + i * BAND_BYTES;
            let band = |at: usize| Band {
                kind: be16(bytes, at),
                rate: be32(bytes, at + 4),
                burst: be32(bytes, at + 8),
                precedence: bytes.get(at + 12).copied().unwrap_or(0),
                packets: 0,
                bytes: 0,
            };
            (0..count).map(|i| band(at(i))).collect::<Vec<_>>()
        };
        match (be16(bytes, 8), self.position(id)) {
            (0, known) => {
                if self.list.len() == METERS {
                    return Err(error::OUT_OF_METERS);
                }
                if known.is_some() {
                    return Err(error::METER_EXISTS);
                }
                if count > BANDS {
                    return Err(error::OUT_OF_BANDS);
                }
                let block = pool
                    .take(METER_BYTES + BAND_BYTES * count)
                    .ok_or(error::OUT_OF_BANDS)?;
                self.list.push(Meter {
                    id,
                    flags,
                    bands: bands(),
                    block,
                    added_ms: now_ms,
                });
            }
            (1, known) => {
                let position = known.ok_or(error::UNKNOWN_METER)?;
                if count > BANDS {
                    return Err(error::OUT_OF_BANDS);
                }
                let counters = self.counters(pool, position);
                pool.free(self.list[position].block);
                let Some(block) = pool.take(METER_BYTES + BAND_BYTES * count) else {
                    // This one and those behind it have gone (quirk 180).
                    self.list.truncate(position);
                    return Err(error::OUT_OF_BANDS);
                };
                let meter = &mut self.list[position];
                meter.block = block;
                meter.flags = flags;
                meter.bands = bands();
                self.set_counters(pool, position, counters);
            }
            (2, _) if id == ALL => {
                for meter in self.list.drain(..) {
                    pool.free(meter.block);
                }
            }
            (2, Some(position)) => pool.free(self.list.swap_remove(position).block),
            _ => {}
        }
        Ok(())
    }

    /// Packets and bytes of the meter at a position.
    pub(super) fn counters(&self, pool: &BlockPool, position: usize) -> (u64, u64) {
        let memory = pool.read_on(self.list[position].block);
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| memory[at + i]));
        (word(PACKETS_AT), word(BYTES_AT))
    }

    fn set_counters(&self, pool: &mut BlockPool, position: usize, (packets, bytes): (u64, u64)) {
        let block = self.list[position].block;
        pool.write(block, PACKETS_AT, &packets.to_le_bytes());
        pool.write(block, BYTES_AT, &bytes.to_le_bytes());
    }

    /// A frame of `bytes` bytes (without FCS) passes the meter with this identifier; an unknown one lets it pass
    /// (quirk 178).
    pub(super) fn meter(
        &mut self,
        pool: &mut BlockPool,
        id: u32,
        bytes: usize,
        now_ms: u64,
    ) -> Metered {
        let Some(position) = self.position(id) else {
            return Metered::Pass;
        };
        let (packets, sum) = self.counters(pool, position);
        let counters = (packets.wrapping_add(1), sum.wrapping_add(bytes as u64));
        self.set_counters(pool, position, counters);
        let (meter, window) = (&mut self.list[position], &mut self.windows[position]);
        if meter.flags & (flag::KBPS | flag::PACKETS) == 0 {
            return Metered::Pass;
        }
        let rate = window.rate(meter.flags, now_ms);
        let exceeded = meter
            .bands
            .iter_mut()
            .filter(|band| band.rate > 0 && u64::from(band.rate) <= rate)
            .reduce(|best, band| if band.rate > best.rate { band } else { best });
        let Some(band) = exceeded else {
            window.enter(bytes, now_ms);
            return Metered::Pass;
        };
        if !matches!(band.kind, band::DROP | band::REMARK) {
            return Metered::Pass;
        }
        band.packets += 1;
        band.bytes += bytes as u64;
        if band.kind == band::DROP {
            Metered::Drop
        } else {
            Metered::Remark(band.precedence)
        }
    }
}
