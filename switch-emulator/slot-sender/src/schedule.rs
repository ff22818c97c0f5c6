//! When each flow's slots begin.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use live_host::error::StartError;

use crate::config::{FlowConfig, SlotsConfig};

/// From the start until the first slot: destination and interfaces are ready.
const LEAD_NS: u64 = 200_000_000;

/// Slots of all flows, in order of time.
#[derive(Debug)]
pub(crate) struct SlotSchedule {
    /// For each flow: when its next slot begins, its index, and the sequence number.
    next: BinaryHeap<Reverse<(u64, usize, u32)>>,
    /// By flow.
    periods_ns: Vec<u64>,
    /// Slots that begin then, or later, are not sent.
    end_ns: u64,
}

impl SlotSchedule {
    pub(crate) fn new(config: &SlotsConfig, now_ns: u64) -> Result<Self, StartError> {
        let begin_ns = match config.start_ns {
            Some(start_ns) if start_ns <= now_ns => {
                return Err(StartError::new(format!(
                    "start_ns: was {} us ago; give an instant that is to come",
                    (now_ns - start_ns) / 1_000
                )));
            }
            Some(start_ns) => start_ns,
            None => (now_ns + LEAD_NS).next_multiple_of(config.period_ns),
        };
        let zero_ns = config.start_ns.unwrap_or(0);
        let first = |(place, flow): (usize, &FlowConfig)| {
            let period_ns = config.period_of(flow);
            let since_ns = begin_ns - zero_ns;
            // The flow's first slot is the first one that does not begin before the run.
            let periods = since_ns.saturating_sub(flow.offset_ns).div_ceil(period_ns);
            Reverse((zero_ns + flow.offset_ns + periods * period_ns, place, 0))
        };
        let end_ns = config.periods.map_or(u64::MAX, |periods| {
            begin_ns.saturating_add(periods.saturating_mul(config.period_ns))
        });
        Ok(Self {
            next: config.flows.iter().enumerate().map(first).collect(),
            periods_ns: config
                .flows
                .iter()
                .map(|flow| config.period_of(flow))
                .collect(),
            end_ns,
        })
    }
}

impl Iterator for SlotSchedule {
    /// The flow's place, its sequence number, and when the slot begins.
    type Item = (usize, u32, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((due, flow, sequence)) = self.next.pop()?;
        if due >= self.end_ns {
            return None;
        }
        let then = due + self.periods_ns[flow];
        self.next
            .push(Reverse((then, flow, sequence.wrapping_add(1))));
        Some((flow, sequence, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::config;

    #[test]
    fn slots_begin_at_whole_periods_in_order_of_time() {
        let config = config("packet-ring", &[30_000, 15_000]).unwrap();
        let schedule: Vec<_> = SlotSchedule::new(&config, 7).unwrap().collect();
        let order: Vec<_> = schedule
            .iter()
            .map(|(flow, sequence, _)| (*flow, *sequence))
            .collect();
        assert_eq!(order, [(1, 0), (0, 0), (1, 1), (0, 1)]);
        let within: Vec<_> = schedule.iter().map(|(.., due)| due % 1_000_000).collect();
        assert_eq!(within, [15_000, 30_000, 15_000, 30_000]);
    }

    #[test]
    fn flows_have_periods_of_their_own_and_runs_a_beginning() {
        let mut config = config("packet-ring", &[30_000, 15_000]).unwrap();
        config.flows[1].period_ns = Some(2_000_000);
        config.periods = Some(4);
        let of = |schedule: SlotSchedule| schedule.collect::<Vec<_>>();
        let soon = of(SlotSchedule::new(&config, 3_000_000_000_000_000_007).unwrap());
        let flows: Vec<_> = soon
            .iter()
            .map(|(flow, sequence, _)| (*flow, *sequence))
            .collect();
        // It begins at an odd millisecond, so the slow flow's first slot is in the second.
        assert_eq!(flows, [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)]);
        // Wherever a host begins, slots are whole multiples of the flow's period away from 1970.
        assert!(soon.iter().all(|(flow, _, due)| match flow {
            0 => due % 1_000_000 == 30_000,
            _ => due % 2_000_000 == 15_000,
        }));
        config.start_ns = Some(777);
        let begun: Vec<_> = of(SlotSchedule::new(&config, 776).unwrap());
        assert_eq!(
            begun[..3],
            [(1, 0, 15_777), (0, 0, 30_777), (0, 1, 1_030_777)]
        );
        let error = SlotSchedule::new(&config, 5_777).unwrap_err().to_string();
        assert_eq!(
            error,
            "start_ns: was 5 us ago; give an instant that is to come"
        );
        config.start_ns = None;
        config.periods = None;
        assert_eq!(
            SlotSchedule::new(&config, 7).unwrap().take(1_000).count(),
            1_000,
            "no end"
        );
    }
}
