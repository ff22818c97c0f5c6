//! The data ports on interfaces, found by address and by what came in.

use std::io;
use std::ops::{Index, IndexMut};

use zodiac_firmware::PortNumber;

use crate::boards::{place, PORTS};
use crate::config::PortAddress;
use crate::readiness::Readiness;
use crate::receive_port::ReceivePort;
use live_host::packet_socket::PacketSocket;

/// A data port on an interface.
#[derive(Debug)]
pub struct DataPort {
    /// The board and its port.
    pub address: PortAddress,
    /// The interface.
    pub socket: PacketSocket,
    /// The link's timing.
    pub receive: ReceivePort,
    /// Whether the board's own connection passes here.
    pub native: bool,
    /// Whether its link is up; what leaves by it otherwise is gone.
    pub is_up: bool,
    /// Errors already reported.
    reported: Vec<PortError>,
}

/// Error of an interface; each is reported once a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortError {
    /// A frame that no link carries.
    Oversize,
    /// More frames than the link carries.
    Overrun,
    /// A checksum that was left to hardware.
    Checksum,
    /// It cannot be read.
    Receive,
    /// It refuses a frame.
    Send,
}

impl DataPort {
    /// Returns the port behind this socket; `native` if the board's own connection passes here.
    #[must_use]
    pub fn new(
        address: PortAddress,
        socket: PacketSocket,
        receive: ReceivePort,
        native: bool,
    ) -> Self {
        Self {
            address,
            socket,
            receive,
            native,
            is_up: true,
            reported: Vec::new(),
        }
    }

    /// Returns whether this error is new on this port; it counts as reported from then on.
    pub fn is_new(&mut self, error: PortError) -> bool {
        let new = !self.reported.contains(&error);
        if new {
            self.reported.push(error);
        }
        new
    }
}

/// All data ports. Finding one costs the same however many there are.
#[derive(Debug)]
pub struct DataPorts {
    ports: Vec<DataPort>,
    by_address: Vec<[Option<usize>; PORTS]>,
    readiness: Readiness,
}

impl DataPorts {
    /// Returns these ports, of so many boards.
    ///
    /// # Errors
    /// The kernel cannot watch them.
    pub fn new(ports: Vec<DataPort>, boards: usize) -> io::Result<Self> {
        let readiness = Readiness::new()?;
        let mut by_address = vec![[None; PORTS]; boards];
        for (index, port) in ports.iter().enumerate() {
            readiness.watch(&port.socket, index)?;
            by_address[port.address.board][place(port.address.port)] = Some(index);
        }
        Ok(Self {
            ports,
            by_address,
            readiness,
        })
    }

    /// Returns the port of a board, if it has an interface.
    #[must_use]
    pub fn find(&self, board: usize, port: PortNumber) -> Option<usize> {
        self.by_address[board][place(port)]
    }

    /// Puts into `ready` the ports that have frames, or something to tell, and returns whether these are all. Never
    /// waits.
    pub fn poll(&self, ready: &mut Vec<usize>) -> bool {
        self.readiness.poll(ready)
    }
}

impl Index<usize> for DataPorts {
    type Output = DataPort;

    fn index(&self, index: usize) -> &DataPort {
        &self.ports[index]
    }
}

impl IndexMut<usize> for DataPorts {
    fn index_mut(&mut self, index: usize) -> &mut DataPort {
        &mut self.ports[index]
    }
}
