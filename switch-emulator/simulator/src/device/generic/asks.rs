//! When to ask each port's discipline again for a frame. Few of a switch's ports are busy at a time; idle ones cost
//! nothing.

/// The instants at which ports are to be asked, at most one for each port.
#[derive(Debug, Default)]
pub(super) struct Asks {
    /// Instant and port, latest first: there are so few that a sorted list is quickest.
    latest_first: Vec<(u64, u8)>,
}

impl Asks {
    /// Sets or forgets a port's instant.
    pub(super) fn set(&mut self, port: u8, at_ns: Option<u64>) {
        let of_port = |one: &(u64, u8)| one.1 == port;
        if let Some(place) = self.latest_first.iter().rposition(of_port) {
            self.latest_first.remove(place);
        }
        if let Some(at_ns) = at_ns {
            let ask = (at_ns, port);
            let place = self.latest_first.partition_point(|later| *later > ask);
            self.latest_first.insert(place, ask);
        }
    }

    /// Returns the first instant.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.latest_first.last().map(|(at_ns, _)| *at_ns)
    }

    /// Of the ports with this instant, which is the earliest of all, the lowest one above `after`.
    pub(super) fn port_at(&self, at_ns: u64, after: u8) -> Option<u8> {
        let ports = self.latest_first.iter().rev();
        ports
            .take_while(|(ask_ns, _)| *ask_ns == at_ns)
            .map(|(_, port)| *port)
            .find(|port| *port > after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_with_one_instant_come_in_the_order_of_their_numbers() {
        let mut asks = Asks::default();
        for port in [200, 3, 255, 7] {
            asks.set(port, Some(50));
        }
        asks.set(7, Some(60));
        asks.set(8, Some(40));
        asks.set(8, None);
        assert_eq!(asks.next_ns(), Some(50));
        assert_eq!(asks.port_at(50, 0), Some(3));
        assert_eq!(asks.port_at(50, 3), Some(200));
        assert_eq!(asks.port_at(50, 200), Some(255));
        assert_eq!(asks.port_at(50, 255), None);
        assert_eq!(asks.port_at(40, 0), None);
        for port in [200, 3, 255] {
            asks.set(port, None);
        }
        assert_eq!(asks.next_ns(), Some(60));
        assert_eq!(asks.port_at(60, 0), Some(7));
    }
}
