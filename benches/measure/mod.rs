//! What the benchmarks share: cold processes of the real program, and how figures are put.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod wait;

use wait::wait;

/// What a process took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// From start to end, by the clock on the wall.
    pub(crate) time: Duration,
    /// On all cores, the system's part included.
    pub(crate) cpu: Duration,
    /// At most, in megabytes.
    pub(crate) memory: f64,
}

/// The program, in a workspace, with nothing of this machine's settings.
pub(crate) fn memctl(root: &Path, args: &[&str]) -> Command {
    program(Path::new(env!("CARGO_BIN_EXE_memctl")), root, args)
}

/// A build of the program, as [`memctl`] runs it.
pub(crate) fn program(path: &Path, root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(path);
    command
        .args(args)
        .current_dir(if root.is_dir() { root } else { Path::new("/") })
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("MEMCTL_LOCAL_PROBE", "false")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Runs a process to its end, which must be a success.
pub(crate) fn run(mut command: Command) -> Used {
    let ended = ended(&mut command);
    assert!(ended.is_ok(), "{command:?}");
    ended.unwrap()
}

/// Runs a process to its end; an error holds what a failed one took.
#[expect(clippy::cast_precision_loss, reason = "bytes of one process")]
pub(crate) fn ended(command: &mut Command) -> Result<Used, Used> {
    let start = Instant::now();
    let ended = wait(command.spawn().unwrap());
    let used = Used {
        time: start.elapsed(),
        cpu: ended.cpu,
        memory: ended.memory as f64 / 1e6,
    };
    if ended.status.success() {
        Ok(used)
    } else {
        Err(used)
    }
}

/// The median time and the greatest memory of so many processes, after one that is not counted.
pub(crate) fn cold(processes: usize, command: &mut dyn FnMut() -> Command) -> (Duration, f64) {
    run(command());
    let used: Vec<Used> = (0..processes).map(|_| run(command())).collect();
    let memory = used.iter().map(|used| used.memory).fold(0.0, f64::max);
    let mut times: Vec<Duration> = used.iter().map(|used| used.time).collect();
    (median(&mut times), memory)
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

pub(crate) fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
