//! Network namespaces.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

use live_host::error::StartError;
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

/// Runs `work` in another network namespace, if one is given. Sockets opened there stay there.
pub(crate) fn in_namespace<T: Send>(
    namespace: Option<&Path>,
    work: impl FnOnce() -> Result<T, StartError> + Send,
) -> Result<T, StartError> {
    let Some(namespace) = namespace else {
        return work();
    };
    let enter = || -> io::Result<()> {
        let file = fs::File::open(namespace)?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    };
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            enter().map_err(|error| {
                StartError::new(format!("namespace {}: {error}", namespace.display()))
            })?;
            work()
        });
        working
            .join()
            .map_err(|_| StartError::new("a thread failed; report this as a bug"))?
    })
}
