//! A pseudo-terminal under a path of its own.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use rustix::pty::{grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{tcgetattr, tcsetattr, OptionalActions};

/// A pseudo-terminal and the symbolic link that leads to it; the link goes with it.
///
/// The terminal's side is held open here too: programs may come and go without the line being reset, which would
/// switch the kernel's own echo on.
#[derive(Debug)]
pub struct PseudoTerminal {
    board: OwnedFd,
    _terminal: OwnedFd,
    device: PathBuf,
    link: PathBuf,
}

impl PseudoTerminal {
    /// Opens one and makes `link` lead to it. A symbolic link of an earlier run is replaced.
    ///
    /// # Errors
    /// No pseudo-terminal is to be had, or the link cannot be made; `AlreadyExists` if there is something else.
    pub fn open(link: &Path) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let board = openpt(flags)?;
        grantpt(&board)?;
        unlockpt(&board)?;
        fcntl_setfl(&board, fcntl_getfl(&board)? | OFlags::NONBLOCK)?;
        let terminal = ioctl_tiocgptpeer(&board, flags)?;
        let mut mode = tcgetattr(&terminal)?;
        mode.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &mode)?;
        let device = ptsname(&board, Vec::new())?;
        let device = PathBuf::from(OsStr::from_bytes(device.as_bytes()));
        make_link(&device, link)?;
        Ok(Self {
            board,
            _terminal: terminal,
            device,
            link: link.to_owned(),
        })
    }

    /// Reads what was typed; `WouldBlock` if nothing was.
    ///
    /// # Errors
    /// As `read(2)`.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.board, buffer)?)
    }

    /// Prints what has room; `WouldBlock` if nothing has.
    ///
    /// # Errors
    /// As `write(2)`.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.board, bytes)?)
    }
}

impl AsFd for PseudoTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.board.as_fd()
    }
}

impl Drop for PseudoTerminal {
    fn drop(&mut self) {
        // Somebody else's link, made since, stays.
        if fs::read_link(&self.link).is_ok_and(|target| target == self.device) {
            let _ = fs::remove_file(&self.link);
        }
    }
}

/// Makes the link beside its place, then renames it: it always leads somewhere.
fn make_link(device: &Path, link: &Path) -> io::Result<()> {
    match fs::symlink_metadata(link) {
        Ok(found) if !found.file_type().is_symlink() => return Err(ErrorKind::AlreadyExists.into()),
        _ => {}
    }
    let mut name = link.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = link.with_file_name(name);
    let _ = fs::remove_file(&beside); // Of a process with the same number that was killed.
    symlink(device, &beside)?;
    fs::rename(&beside, link).inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_it_as_long_as_it_lives() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("console");
        symlink("/nowhere", &link).unwrap();
        let terminal = PseudoTerminal::open(&link).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), terminal.device);
        assert!(link.exists());
        drop(terminal);
        assert!(fs::symlink_metadata(&link).is_err());
    }

    #[test]
    fn another_s_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("console");
        let first = PseudoTerminal::open(&link).unwrap();
        let second = PseudoTerminal::open(&link).unwrap();
        drop(first);
        assert_eq!(fs::read_link(&link).unwrap(), second.device);
    }

    #[test]
    fn a_file_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("console");
        fs::write(&link, "precious").unwrap();
        let error = PseudoTerminal::open(&link).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&link).unwrap(), "precious");
    }

    #[test]
    fn bytes_pass_unchanged_and_nothing_is_echoed() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("console");
        let board = PseudoTerminal::open(&link).unwrap();
        let mut terminal = fs::File::options()
            .read(true)
            .write(true)
            .open(&link)
            .unwrap();
        io::Write::write_all(&mut terminal, b"\r\x03\n\x11").unwrap();
        let mut buffer = [0; 64];
        assert_eq!(board.read(&mut buffer).unwrap(), 4);
        assert_eq!(&buffer[..4], b"\r\x03\n\x11");
        board.write(b"a\r\n\x00").unwrap();
        let mut read = [0; 4];
        io::Read::read_exact(&mut terminal, &mut read).unwrap();
        assert_eq!(&read, b"a\r\n\x00");
        drop(terminal);
        let error = board.read(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}
