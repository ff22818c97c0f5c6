//! Readiness of many interfaces: one `epoll` call for all of them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::Timespec;

/// Maximum number of interfaces per call; the kernel goes round, so the others come with the next call.
const MAX_EVENTS: usize = 64;
const NO_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// A set of sockets, each with a number.
#[derive(Debug)]
pub struct Readiness {
    epoll: OwnedFd,
}

impl Readiness {
    /// No sockets yet.
    ///
    /// # Errors
    /// No free file descriptor.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    /// Adds a socket; `number` identifies it in later results.
    ///
    /// # Errors
    /// The system's limit of watched sockets is reached.
    pub fn watch(&self, socket: impl AsFd, number: usize) -> io::Result<()> {
        let data = EventData::new_u64(number as u64);
        Ok(epoll::add(&self.epoll, socket, data, EventFlags::IN)?)
    }

    /// Puts into `ready` the numbers of sockets that have something to read, or an error to tell, and returns whether
    /// these are all. Never waits.
    pub fn poll(&self, ready: &mut Vec<usize>) -> bool {
        ready.clear();
        let mut answers = [MaybeUninit::<Event>::uninit(); MAX_EVENTS];
        // Fails only if a signal interrupts: then the next question tells.
        if let Ok((answers, _)) = epoll::wait(&self.epoll, &mut answers, Some(&NO_WAIT)) {
            ready.extend(answers.iter().map(|event| event.data.u64() as usize));
            return ready.len() < MAX_EVENTS;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn tells_who_has_something_until_it_is_read() {
        let readiness = Readiness::new().unwrap();
        let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
        for (number, (_, receiver)) in pairs.iter().enumerate() {
            readiness.watch(receiver, number).unwrap();
        }
        let mut ready = vec![7];
        assert!(readiness.poll(&mut ready), "all of none");
        assert!(ready.is_empty(), "{ready:?}");
        (&pairs[1].0).write_all(b"x").unwrap();
        for _ in 0..2 {
            readiness.poll(&mut ready);
            assert_eq!(ready, [1]);
        }
        (&pairs[1].1).read_exact(&mut [0]).unwrap();
        readiness.poll(&mut ready);
        assert!(ready.is_empty(), "{ready:?}");
    }

    #[test]
    fn everybody_has_a_turn() {
        let readiness = Readiness::new().unwrap();
        let pairs: Vec<_> = (0..3 * MAX_EVENTS)
            .map(|_| UnixStream::pair().unwrap())
            .collect();
        for (number, (sender, receiver)) in pairs.iter().enumerate() {
            readiness.watch(receiver, number).unwrap();
            (&*sender).write_all(b"x").unwrap();
        }
        let (mut seen, mut ready) = (vec![false; pairs.len()], Vec::new());
        for _ in 0..3 {
            assert!(!readiness.poll(&mut ready), "there are more");
            for &number in &ready {
                seen[number] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
