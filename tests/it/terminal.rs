//! A real terminal: a `tmux` server of the test, with a shell in which the program is `memctl`.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::{EVER, skipped};
use crate::workspace::Workspace;

/// A terminal with a shell in the project directory; closed when dropped.
pub(crate) struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// `None`, with a message, if `tmux` is missing.
    pub(crate) fn open(workspace: &Workspace, columns: u16, rows: u16) -> Option<Self> {
        let program = workspace.command();
        let top = workspace.root().parent().unwrap().to_owned();
        #[cfg(unix)]
        std::os::unix::fs::symlink(program.get_program(), top.join("memctl")).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let terminal = Self {
            socket: top.join("tmux"),
        };
        let mut tmux = terminal.tmux(&["-f", "/dev/null", "new-session", "-d"]);
        tmux.args(["-x", &columns.to_string(), "-y", &rows.to_string(), "sh"])
            .current_dir(workspace.root())
            .env_clear()
            .envs(program.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .env("PATH", format!("{}:{path}", top.display()))
            .env("TERM", "xterm-256color")
            .env("PS1", "$ ")
            .env("LC_ALL", "C.UTF-8");
        match tmux.output() {
            Ok(output) if output.status.success() => {
                // Text typed before the prompt appears is shown in front of it.
                let start = Instant::now();
                while !terminal.screen().starts_with(['$', '#']) {
                    assert!(start.elapsed() < EVER, "no shell");
                    std::thread::sleep(Duration::from_millis(10));
                }
                Some(terminal)
            }
            Ok(output) => panic!("{output:?}"),
            Err(error) => {
                skipped(&format!("what a terminal shows: no tmux here ({error})"));
                None
            }
        }
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket).args(args);
        tmux
    }

    fn ask(&self, args: &[&str]) -> String {
        let Output { stdout, status, .. } = self.tmux(args).output().unwrap();
        assert!(status.success(), "{args:?}");
        String::from_utf8(stdout).unwrap()
    }

    /// Presses keys, in the names of `tmux`.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"][..], keys].concat());
    }

    /// Types a line and presses enter. If it begins with `clear; `, what stood there before is gone at once: a busy
    /// shell would leave it until it comes to its own `clear`, and a wait for the next output would find the last one.
    pub(crate) fn type_line(&self, line: &str) {
        let line = line.strip_prefix("clear; ").map_or(line, |rest| {
            self.wait_for_prompt();
            self.keys(&["-R"]);
            self.keys(&["Enter"]);
            self.wait_for_prompt();
            rest
        });
        self.type_text(line);
        self.keys(&["Enter"]);
    }

    pub(crate) fn type_text(&self, text: &str) {
        self.ask(&["send-keys", "-l", text]);
    }

    /// Waits for the prompt of the shell: a program that still ends takes what is typed.
    pub(crate) fn wait_for_prompt(&self) {
        let start = Instant::now();
        let is_ready = || matches!(self.screen().lines().last(), Some("$" | "#"));
        while !is_ready() {
            assert!(start.elapsed() < EVER, "no prompt:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Screen content, without trailing empty lines.
    pub(crate) fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// Returns `true` if the cursor is visible.
    pub(crate) fn has_cursor(&self) -> bool {
        self.ask(&["display-message", "-p", "#{cursor_flag}"])
            .trim()
            == "1"
    }

    /// Waits until the screen shows a text, and no longer changes.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        // The typed line is not output.
        let shows = |line: &str| line.contains(text) && !line.starts_with(['$', '#']);
        self.wait_until(text, |screen| screen.lines().any(shows))
    }

    /// Waits until the screen is as wanted, and no longer changes.
    pub(crate) fn wait_until(&self, text: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is_wanted(&screen) {
                std::thread::sleep(Duration::from_millis(40));
                let later = self.screen();
                if later == screen {
                    return screen;
                }
                continue;
            }
            assert!(start.elapsed() < EVER, "no `{text}`:\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]).output());
    }
}
