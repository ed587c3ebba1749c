//! A program as the model: prompt on standard input, answer on standard output.
//!
//! The command line tool of an agent host can serve as a model this way. The program is started
//! without a shell, in its own process group: in its command line variables, globs, pipes and
//! redirections are ordinary characters. If the request is cancelled (time limit, Ctrl-C), the
//! whole group is killed, because child processes would continue to cost money. All three pipes are
//! served concurrently, so the program's order of reads and writes cannot cause a deadlock. A
//! program may ignore its input. The cost is unknown.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use memctl_files::process::Group;

use super::error::after_colon;
use super::{Error, ErrorKind, Paid, Request};

/// Bytes kept from the end of standard error.
const STDERR_TAIL: usize = 2048;

/// Maximum size of an answer in bytes.
const LONGEST: usize = 32 << 20;

/// Bytes kept of an answer that is too long.
const KEPT: usize = 64 << 10;

/// Time that the pipes may stay open after the program has exited, since a child process can hold
/// them open.
const GRACE: Duration = Duration::from_millis(500);

/// Program that answers prompts.
#[derive(Debug)]
pub struct Exec {
    argv: Vec<String>,
    /// `exec/<program>`.
    pub(super) model: String,
    /// Time limit of a request, including its repair.
    pub(super) answer_within: Duration,
    longest: usize,
}

impl Exec {
    /// Creates the model of a command line, with quotes and backslashes as in a POSIX shell. Does
    /// not check that the program exists.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for a quote that is not closed, or an empty line.
    pub fn new(line: &str, answer_within: Duration) -> Result<Self, Error> {
        let invalid = |reason: &str| {
            let message = format!("invalid command `{line}`: {reason}");
            Error::new(ErrorKind::Config, message)
        };
        let argv = shell_words::split(line).map_err(|_| invalid("a quote is not closed"))?;
        let program = argv.first().filter(|program| !program.is_empty());
        let program = Path::new(program.ok_or_else(|| invalid("it names no program"))?);
        let name = program.file_name().unwrap_or(program.as_os_str());
        Ok(Self {
            model: format!("exec/{}", name.to_string_lossy()),
            argv,
            answer_within,
            longest: LONGEST,
        })
    }

    /// Runs the program once. The answer gets the output as it arrives, so a dropped future loses
    /// none.
    pub(super) async fn answer(&self, request: &Request, answer: &mut String) -> Result<(), Error> {
        let failed = |source: io::Error| {
            let message = format!("the program `{}` cannot be run", self.argv[0]);
            Error::new(ErrorKind::Program, message).because(source)
        };
        let mut command = Command::new(&self.argv[0]);
        command
            .args(&self.argv[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Group::begin(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let mut group = Group::of(&child);

        let question = match request.system.as_str() {
            "" => request.user.clone(),
            system => format!("{system}\n\n{}", request.user),
        };
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program may close its input early.
                drop(stdin.write_all(question.as_bytes()).await);
            }
            Ok(())
        };
        let mut stderr_tail = Vec::with_capacity(16 << 10);
        let pipes = async {
            tokio::try_join!(
                write,
                read_answer(stdout, self.longest, answer),
                read_tail(stderr, &mut stderr_tail),
            )
        };
        let (status, read) = watch(&mut child, &mut group, pipes).await.map_err(failed)?;
        let message = match read {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                // It is no answer; its beginning shows what the program did.
                answer.truncate(answer.floor_char_boundary(KEPT));
                format!("wrote more than {} bytes", self.longest)
            }
            Err(error) => return Err(failed(error)),
            Ok(()) if status.success() && answer.trim().is_empty() => "wrote nothing".to_owned(),
            Ok(()) if status.success() => return Ok(()),
            Ok(()) => {
                let stderr = String::from_utf8_lossy(&stderr_tail);
                format!("failed ({status}){}", after_colon(&stderr))
            }
        };
        let message = format!("the program `{}` {message}", self.argv[0]);
        Err(Error::new(ErrorKind::Program, message).after(Paid {
            text: std::mem::take(answer),
            ..Paid::default()
        }))
    }
}

/// Returns a command line with the path of its program in this directory, if it names one that is relative. A name
/// alone is looked for on the `PATH`.
pub fn in_directory(line: &str, directory: &Path) -> Option<String> {
    let mut argv = shell_words::split(line).ok()?;
    let program = Path::new(argv.first()?);
    if program.is_absolute() || program.components().count() < 2 {
        return None;
    }
    argv[0] = directory.join(program).display().to_string();
    Some(shell_words::join(argv))
}

/// Serves the pipes until the program has exited, and at most [`GRACE`] longer.
async fn watch<T>(
    child: &mut Child,
    group: &mut Group,
    pipes: impl Future<Output = io::Result<T>>,
) -> io::Result<(ExitStatus, io::Result<()>)> {
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

/// Appends the output to the answer, so that it survives a time limit.
async fn read_answer(
    from: Option<impl AsyncRead + Unpin>,
    longest: usize,
    answer: &mut String,
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut total = 0;
    let mut bytes = Vec::with_capacity(16 << 10);
    loop {
        let read = from.read_buf(&mut bytes).await?;
        total += read;
        // An incomplete character at the end of a chunk waits for its remaining bytes.
        let whole = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
            _ => bytes.len(),
        };
        answer.push_str(&String::from_utf8_lossy(&bytes[..whole]));
        bytes.drain(..whole);
        if total > longest {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if read == 0 {
            return Ok(());
        }
    }
}

async fn read_tail(from: Option<impl AsyncRead + Unpin>, tail: &mut Vec<u8>) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    while from.read_buf(tail).await? > 0 {
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
    fn ask(script: &str, user: &str, change: impl FnOnce(&mut Exec)) -> Result<String, Error> {
        let line = shell_words::join(["sh", "-c", script]);
        let mut exec = Exec::new(&line, Duration::from_mins(2))?;
        change(&mut exec);
        let llm = Llm::Exec(exec);
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
        let missing = Exec::new("/nowhere/at-all", Duration::from_mins(2)).unwrap();
        let error = ask("", "", |exec| *exec = missing).unwrap_err();
        let expected = "the program `/nowhere/at-all` cannot be run";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    #[cfg_attr(windows, ignore = "paths of Unix")]
    fn a_relative_program_is_in_its_directory() {
        let check = |line: &str, expected: Option<&str>| {
            let found = in_directory(line, Path::new("/w"));
            assert_eq!(found.as_deref(), expected, "{line}");
        };
        check("bin/model.sh -p 'a b'", Some("/w/bin/model.sh -p 'a b'"));
        check("./model.sh", Some("/w/./model.sh"));
        check("claude -p", None);
        check("/bin/sh model.sh", None);
        check("a 'b", None);
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_splits_it() {
        let check = |line: &str, expected: Option<&[&str]>| {
            let exec = Exec::new(line, Duration::ZERO).ok();
            let argv = exec
                .as_ref()
                .map(|exec| exec.argv.iter().map(String::as_str));
            assert_eq!(argv.map(Vec::from_iter).as_deref(), expected, "{line}");
        };
        check("claude -p", Some(&["claude", "-p"]));
        check(r#"a "b c" 'd "e"'"#, Some(&["a", "b c", "d \"e\""]));
        check("a | b > $C *", Some(&["a", "|", "b", ">", "$C", "*"]));
        for line in ["", "  ", "a 'b", "a \"b", "a \"b\\", "''"] {
            check(line, None);
        }
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
        assert!(error.kind == ErrorKind::TimedOut, "{error}");
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
        let error = ask("yes", "", |c| c.longest = 10_000).unwrap_err();
        assert!(
            error.to_string().ends_with("wrote more than 10000 bytes"),
            "{error}"
        );
        assert!(error.raw_text().unwrap().starts_with("y\ny\n"));
    }
}
