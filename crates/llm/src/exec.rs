//! A program as the model: prompt on standard input, answer on standard output.
//!
//! The command line tool of an agent host can serve as a model this way. The program is started
//! without a shell, in its own process group. If the request is cancelled (time limit, Ctrl-C), the
//! whole group is killed, because child processes would continue to cost money. All three pipes are
//! served concurrently, so the program's order of reads and writes cannot cause a deadlock. A
//! program may ignore its input. The cost is unknown.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use memctl_files::process::Group;

use super::attempt_log::Draft;
use super::{Error, Request};

/// Bytes kept from the end of standard error.
const STDERR_TAIL: usize = 2048;

/// Time that the pipes may stay open after the program has exited, since a child process can hold
/// them open.
const GRACE: Duration = Duration::from_millis(500);

/// Program and limits.
#[derive(Debug, Clone)]
pub struct ExecConfig {
    /// Program and arguments; [`words`](super::words()) splits a command line.
    pub argv: Vec<String>,
    /// Variables added to the inherited environment.
    pub env: Vec<(String, String)>,
    /// Time limit of a request, including its repair.
    pub answer_within: Duration,
    /// Maximum answer size in bytes.
    pub max_bytes: usize,
}

impl ExecConfig {
    /// Configuration with default limits: 120 s and 32 MiB.
    pub const fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            env: Vec::new(),
            answer_within: Duration::from_mins(2),
            max_bytes: 32 << 20,
        }
    }
}

/// Program that answers prompts.
#[derive(Debug)]
pub struct Exec {
    pub(super) config: ExecConfig,
    program: String,
    model: String,
}

impl Exec {
    /// Creates the model. Does not check that the program exists.
    ///
    /// # Errors
    ///
    /// [`Error::ExecCommand`] if `argv` is empty.
    pub fn new(config: ExecConfig) -> Result<Self, Error> {
        let program = config.argv.first().map_or("", String::as_str);
        if program.is_empty() {
            return Err(Error::ExecCommand {
                line: config.argv.join(" "),
                reason: "the program is missing",
            });
        }
        let name = Path::new(program).file_name().map_or_else(
            || program.to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self {
            model: format!("exec/{name}"),
            program: name,
            config,
        })
    }

    /// `exec/<program>`.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Runs the program once. The draft gets the output as it arrives, so a dropped future loses
    /// none.
    pub(super) async fn answer(&self, request: &Request, draft: &mut Draft) -> Result<(), Error> {
        let failed = |source| Error::ExecStart {
            program: self.program.clone(),
            source,
        };
        let mut command = Command::new(&self.config.argv[0]);
        command
            .args(&self.config.argv[1..])
            .envs(self.config.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Group::begin(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let mut group = Group::of(&child);

        let question = question(request);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program may close its input early.
                let written = stdin.write_all(question.as_bytes()).await;
                drop(written);
            }
            Ok(())
        };
        let mut said = Vec::with_capacity(16 << 10);
        let limit = self.config.max_bytes;
        let pipes = async {
            tokio::try_join!(
                write,
                read_answer(stdout, limit, draft),
                read_tail(stderr, &mut said),
            )
        };
        let (status, answer) = watch(&mut child, &mut group, pipes).await.map_err(failed)?;
        match answer {
            Err(Broken::TooLong) => {
                return Err(Error::ExecOutput {
                    program: self.program.clone(),
                    limit,
                    text: std::mem::take(&mut draft.text),
                });
            }
            Err(Broken::Io(error)) => return Err(failed(error)),
            Ok(()) => {}
        }
        if !status.success() {
            return Err(Error::ExecFailed {
                program: self.program.clone(),
                status: status.to_string(),
                stderr: String::from_utf8_lossy(&said).trim().to_owned(),
                text: std::mem::take(&mut draft.text),
            });
        }
        draft.complete = true;
        Ok(())
    }
}

/// Serves the pipes until the program has exited, and at most [`GRACE`] longer.
async fn watch<T>(
    child: &mut Child,
    group: &mut Group,
    pipes: impl Future<Output = Result<T, Broken>>,
) -> std::io::Result<(ExitStatus, Result<(), Broken>)> {
    tokio::pin!(pipes);
    let mut answer = None;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            read = &mut pipes, if answer.is_none() => {
                if read.is_err() {
                    // Nothing reads the output any more, and the program may write without end.
                    group.kill();
                }
                answer = Some(read.map(drop));
            }
        }
    };
    group.release();
    let answer = match answer {
        Some(answer) => answer,
        None => match tokio::time::timeout(GRACE, pipes).await {
            Ok(read) => read.map(drop),
            Err(_) => Ok(()),
        },
    };
    Ok((status, answer))
}

enum Broken {
    TooLong,
    Io(std::io::Error),
}

fn question(request: &Request) -> String {
    match request.system.as_str() {
        "" => request.user.clone(),
        system => format!("{system}\n\n{}", request.user),
    }
}

/// Appends the output to the draft, so that it survives a time limit.
async fn read_answer(
    from: Option<impl AsyncRead + Unpin>,
    limit: usize,
    draft: &mut Draft,
) -> Result<(), Broken> {
    let Some(mut from) = from else { return Ok(()) };
    let mut total = 0;
    let mut bytes = Vec::with_capacity(16 << 10);
    loop {
        let read = from.read_buf(&mut bytes).await.map_err(Broken::Io)?;
        total += read;
        // An incomplete character at the end of a chunk waits for its remaining bytes.
        let whole = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
            _ => bytes.len(),
        };
        draft
            .text
            .push_str(&String::from_utf8_lossy(&bytes[..whole]));
        bytes.drain(..whole);
        if total > limit {
            return Err(Broken::TooLong);
        }
        if read == 0 {
            return Ok(());
        }
    }
}

async fn read_tail(from: Option<impl AsyncRead + Unpin>, tail: &mut Vec<u8>) -> Result<(), Broken> {
    let Some(mut from) = from else { return Ok(()) };
    while from.read_buf(tail).await.map_err(Broken::Io)? > 0 {
        tail.drain(..tail.len().saturating_sub(STDERR_TAIL));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::Llm;

    /// Runs a shell script as the program.
    fn ask(
        script: &str,
        user: &str,
        change: impl FnOnce(&mut ExecConfig),
    ) -> Result<String, Error> {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let mut config = ExecConfig::new(argv);
        change(&mut config);
        let llm = Llm::Exec(Exec::new(config)?);
        let request = Request {
            system: "be brief".to_owned(),
            user: user.to_owned(),
            schema: None,
            max_tokens: 100,
        };
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(llm.ask(&request, &mut |_| {}))
            .map(|reply| {
                assert_eq!(reply.model, "exec/sh");
                assert_eq!(reply.cost_usd, None);
                reply.text
            })
    }

    #[test]
    #[cfg_attr(windows, ignore = "Windows has no `sh`")]
    fn the_prompt_goes_in_and_the_answer_comes_out() {
        let answer = ask("cat", "what is ä€😀?", |_| {}).unwrap();
        assert_eq!(answer, "be brief\n\nwhat is ä€😀?");
        let answer = ask("printf $NAME", "", |c| {
            c.env = vec![("NAME".into(), "x".into())];
        });
        assert_eq!(answer.unwrap(), "x");
    }

    #[test]
    #[cfg_attr(windows, ignore = "Windows has no `sh`")]
    fn long_prompts_and_answers_do_not_block_each_other() {
        let long = "ä".repeat(1 << 20);
        let answer = ask("cat; cat <&- 2>/dev/null; true", &long, |_| {}).unwrap();
        assert!(answer.ends_with(&long), "{}", answer.len());
        // A program that ignores its input.
        assert_eq!(ask("echo yes", &long, |_| {}).unwrap(), "yes\n");
    }

    #[test]
    #[cfg_attr(windows, ignore = "Windows has no `sh`")]
    fn a_failure_shows_the_end_of_standard_error() {
        let error = ask(
            "echo half; seq 1 10000 >&2; echo no credit >&2; exit 3",
            "",
            |_| {},
        );
        let error = error.unwrap_err();
        assert_eq!(error.raw_text(), Some("half\n"));
        let message = error.to_string();
        assert!(
            message.starts_with("the program `sh` failed (exit status: 3): "),
            "{message}"
        );
        assert!(message.ends_with("10000\nno credit"), "{message}");
        assert!(message.len() < 2 * STDERR_TAIL);
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let exec = |c: &mut ExecConfig| c.argv = vec!["/nowhere/at-all".to_owned()];
        let error = ask("", "", exec).unwrap_err();
        assert_eq!(error.to_string(), "the program `at-all` cannot be run");
        assert!(Exec::new(ExecConfig::new(Vec::new())).is_err());
    }

    #[test]
    #[cfg_attr(windows, ignore = "Windows has no `sh`")]
    fn the_time_limit_kills_the_children_too() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        let script = format!(
            "echo so far; (sleep 0.7; touch '{}') & wait",
            mark.display()
        );
        let start = Instant::now();
        let error = ask(&script, "", |c| {
            c.answer_within = Duration::from_millis(200);
        })
        .unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert_eq!(error.raw_text(), Some("so far\n"));
        assert!(start.elapsed() < Duration::from_secs(3));
        std::thread::sleep(Duration::from_millis(700));
        assert!(!mark.exists(), "the child of the program went on");
    }

    #[test]
    #[cfg_attr(windows, ignore = "Windows has no `sh`")]
    fn a_child_that_keeps_the_pipe_open_does_not_keep_us() {
        let start = Instant::now();
        let answer = ask("sleep 5 & echo done", "", |_| {}).unwrap();
        assert_eq!(answer, "done\n");
        assert!(start.elapsed() < Duration::from_secs(3));
    }

    #[test]
    #[cfg_attr(windows, ignore = "Windows has no `sh`")]
    fn endless_answers_end_at_the_limit() {
        let error = ask("yes", "", |c| c.max_bytes = 10_000).unwrap_err();
        assert!(
            matches!(error, Error::ExecOutput { limit: 10_000, .. }),
            "{error}"
        );
        assert!(error.raw_text().unwrap().starts_with("y\ny\n"));
    }
}
