//! What a process took, of which the standard library says only how it ended.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// How a process ended, and what it took.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// On all cores, the system's part included.
    pub(crate) cpu: Duration,
    /// The most memory that it had, in bytes.
    pub(crate) memory: u64,
}

/// Waits for the end of a process. The child is consumed: its id may be that of another from then on.
#[expect(
    unsafe_code,
    clippy::cast_sign_loss,
    reason = "a call of the system with places of its own to write to"
)]
#[expect(clippy::needless_pass_by_value, reason = "nobody may wait for it again")]
pub(crate) fn wait(child: Child) -> Ended {
    let id = i32::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: the structure is made of numbers, and both pointers outlive the call.
    let (waited, used) = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        (libc::wait4(id, &raw mut status, 0, &raw mut used), used)
    };
    assert_eq!(waited, id, "{}", std::io::Error::last_os_error());
    let time = |of: libc::timeval| {
        Duration::from_secs(of.tv_sec as u64) + Duration::from_micros(of.tv_usec as u64)
    };
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Ended {
        status: ExitStatus::from_raw(status),
        cpu: time(used.ru_utime) + time(used.ru_stime),
        memory: used.ru_maxrss as u64 * unit,
    }
}
