//! Meters (OpenFlow 1.3.4, sections 5.7 and 7.3.4.4): each band is a token bucket.

use std::fmt::Debug;

use super::{Ids, Limits, Memory};
use openflow::bytes::{be16, be32};
use openflow::v1_3::error;
use openflow::v1_3::meter::{band, flag, ALL};
use openflow::ErrorCode;

/// Bytes of memory for a meter, and for each of its bands.
const METER_BYTES: usize = 40;
const BAND_BYTES: usize = 16;
const METER_MOD_BYTES: usize = 16;
/// Highest identifier of a meter; those above are for meters of the switch itself, of which there are none.
const LAST_ID: u32 = 0xffff_0000;
/// Default burst: the rate over this time, and a frame of full length in any case.
const DEFAULT_BURST_NS: u128 = 100_000_000;
const LONGEST_FRAME_BITS: u128 = 1_518 * 8;
const NS_PER_S: u128 = 1_000_000_000;

/// Verdict of a meter on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metered {
    /// It goes on.
    Pass,
    /// It is dropped.
    Drop,
    /// Raise the drop precedence of the frame's DSCP by this much.
    Remark(u8),
}

/// One band.
#[derive(Clone, Debug)]
pub(super) struct SpecBand {
    pub(super) kind: u16,
    pub(super) rate: u32,
    pub(super) burst: u32,
    pub(super) precedence: u8,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Bits or packets that it still lets pass, times 10⁹.
    tokens: u128,
    refilled_ns: u64,
}

/// One meter.
#[derive(Clone, Debug)]
pub(super) struct SpecMeter<B> {
    pub(super) id: u32,
    pub(super) flags: u16,
    pub(super) bands: Vec<SpecBand>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) added_ns: u64,
    block: B,
}

/// The meters.
#[derive(Debug)]
pub(super) struct SpecMeters<B>(Vec<SpecMeter<B>>);

impl<B: Debug> Ids for SpecMeters<B> {
    fn has(&self, id: u32) -> bool {
        self.0.iter().any(|meter| meter.id == id)
    }
}

impl<B: Copy> SpecMeters<B> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn list(&self) -> &[SpecMeter<B>] {
        &self.0
    }

    /// Carries out a `METER_MOD`. Returns the meters that have gone.
    pub(super) fn modify(
        &mut self,
        memory: &mut impl Memory<Block = B>,
        limits: Limits,
        message: &[u8],
        now_ns: u64,
    ) -> Result<Vec<u32>, ErrorCode> {
        if message.len() < METER_MOD_BYTES {
            return Err(error::BAD_LENGTH);
        }
        let (command, id) = (be16(message, 8), be32(message, 12));
        let held = self.0.iter().position(|meter| meter.id == id);
        match command {
            0 | 1 => {
                match (command, held) {
                    _ if id == 0 || id > LAST_ID => return Err(error::INVALID_METER),
                    (0, Some(_)) => return Err(error::METER_EXISTS),
                    (1, None) => return Err(error::UNKNOWN_METER),
                    (0, None) if self.0.len() == limits.meters => return Err(error::OUT_OF_METERS),
                    _ => {}
                }
                let flags = be16(message, 10);
                if flags & !flag::ALL != 0
                    || (flags & flag::KBPS != 0) == (flags & flag::PACKETS != 0)
                {
                    return Err(error::BAD_METER_FLAGS);
                }
                let bands = read_bands(&message[METER_MOD_BYTES..], flags, limits, now_ns)?;
                let block = memory
                    .take(METER_BYTES + BAND_BYTES * bands.len())
                    .ok_or(error::OUT_OF_METERS)?;
                let mut meter = SpecMeter {
                    id,
                    flags,
                    bands,
                    packets: 0,
                    bytes: 0,
                    added_ns: now_ns,
                    block,
                };
                if let Some(position) = held {
                    let before = &mut self.0[position];
                    memory.free(before.block);
                    (meter.packets, meter.bytes) = (before.packets, before.bytes);
                    meter.added_ns = before.added_ns;
                    *before = meter;
                } else {
                    self.0.push(meter);
                }
                Ok(Vec::new())
            }
            2 => {
                let (gone, kept) = std::mem::take(&mut self.0)
                    .into_iter()
                    .partition(|meter| id == ALL || meter.id == id);
                self.0 = kept;
                let gone: Vec<SpecMeter<B>> = gone;
                for meter in &gone {
                    memory.free(meter.block);
                }
                Ok(gone.iter().map(|meter| meter.id).collect())
            }
            _ => Err(error::BAD_METER_COMMAND),
        }
    }

    /// A frame of `bytes` bytes (without FCS) passes a meter: of the bands whose rate it exceeds the one of the highest rate
    /// counts.
    pub(super) fn meter(&mut self, id: u32, bytes: usize, now_ns: u64) -> Metered {
        let Some(meter) = self.0.iter_mut().find(|meter| meter.id == id) else {
            return Metered::Pass;
        };
        meter.packets += 1;
        meter.bytes += bytes as u64;
        let cost = if meter.flags & flag::KBPS != 0 {
            8 * bytes as u128 * NS_PER_S
        } else {
            NS_PER_S
        };
        let mut exceeded: Option<&mut SpecBand> = None;
        for band in &mut meter.bands {
            band.refill(meter.flags, now_ns);
            if band.tokens >= cost {
                band.tokens -= cost;
            } else if exceeded.as_ref().is_none_or(|best| band.rate > best.rate) {
                exceeded = Some(band);
            }
        }
        let Some(band) = exceeded else {
            return Metered::Pass;
        };
        band.packets += 1;
        band.bytes += bytes as u64;
        if band.kind == band::DROP {
            Metered::Drop
        } else {
            Metered::Remark(band.precedence)
        }
    }
}

impl SpecBand {
    /// Bits or packets in a second.
    fn rate(&self, flags: u16) -> u128 {
        u128::from(self.rate) * if flags & flag::KBPS != 0 { 1_000 } else { 1 }
    }

    /// Returns its depth, times 10⁹.
    fn depth(&self, flags: u16) -> u128 {
        let kilobits = flags & flag::KBPS != 0;
        let least = if kilobits { LONGEST_FRAME_BITS } else { 1 } * NS_PER_S;
        let depth = if flags & flag::BURST != 0 {
            u128::from(self.burst) * if kilobits { 1_000 } else { 1 } * NS_PER_S
        } else {
            self.rate(flags) * DEFAULT_BURST_NS
        };
        depth.max(least)
    }

    fn refill(&mut self, flags: u16, now_ns: u64) {
        let elapsed = u128::from(now_ns.saturating_sub(self.refilled_ns));
        self.tokens = (self.tokens + elapsed * self.rate(flags)).min(self.depth(flags));
        self.refilled_ns = now_ns;
    }
}

fn read_bands(
    bytes: &[u8],
    flags: u16,
    limits: Limits,
    now_ns: u64,
) -> Result<Vec<SpecBand>, ErrorCode> {
    if bytes.len() % BAND_BYTES != 0 {
        return Err(error::BAD_LENGTH);
    }
    if bytes.len() / BAND_BYTES > limits.bands {
        return Err(error::OUT_OF_BANDS);
    }
    let mut bands = Vec::new();
    for bytes in bytes.chunks_exact(BAND_BYTES) {
        let kind = be16(bytes, 0);
        if !matches!(kind, band::DROP | band::REMARK) || usize::from(be16(bytes, 2)) != BAND_BYTES {
            return Err(error::BAD_BAND);
        }
        let rate = be32(bytes, 4);
        if rate == 0 {
            return Err(error::BAD_RATE);
        }
        let mut band = SpecBand {
            kind,
            rate,
            burst: be32(bytes, 8),
            precedence: if kind == band::REMARK { bytes[12] } else { 0 },
            packets: 0,
            bytes: 0,
            tokens: 0,
            refilled_ns: now_ns,
        };
        band.tokens = band.depth(flags);
        bands.push(band);
    }
    Ok(bands)
}
