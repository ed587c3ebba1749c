//! Agent hosts on this machine.

use std::path::PathBuf;

use crate::cli::context::Context;
use crate::cli::learning::hooks;
use crate::host::ServerHost;
use memctl_files::named as files;

/// Agent host that is set up.
#[derive(Debug, Clone)]
pub(super) struct FoundHost {
    pub(super) host: ServerHost,
    /// Program or directory that shows that it is installed; `None` if the user named it.
    pub(super) found_by: Option<PathBuf>,
}

/// Program of an agent host.
const fn program(host: ServerHost) -> &'static str {
    match host {
        ServerHost::ClaudeCode => "claude",
        ServerHost::VsCode => "code",
        _ => host.name(),
    }
}

/// Directory of its settings, which it makes when it first runs.
fn directory(context: &Context, host: ServerHost) -> Option<PathBuf> {
    if let Some(host) = host.hooks() {
        return hooks::directory(context, host);
    }
    let all = context.environment.all_settings_dir.as_ref();
    Some(all?.join("Code"))
}

/// Returns the hosts that the user named, each once.
pub(super) fn named(hosts: impl IntoIterator<Item = ServerHost>) -> Vec<FoundHost> {
    let mut all: Vec<FoundHost> = Vec::new();
    for host in hosts {
        if all.iter().all(|known| known.host != host) {
            all.push(FoundHost {
                host,
                found_by: None,
            });
        }
    }
    all
}

/// Returns the hosts whose program is on the `PATH`, or whose settings directory is there.
pub(super) fn found(context: &Context) -> Vec<FoundHost> {
    let path = context.environment.search_path();
    let found_by = |host: ServerHost| {
        let mut programs = path.iter().map(|dir| dir.join(program(host)));
        let program = programs.find(|program| files::is_file(program));
        let directory = || directory(context, host).filter(|dir| files::is_dir(dir));
        program.or_else(directory)
    };
    let all = ServerHost::of_coding_agents();
    all.filter_map(|host| {
        let found_by = Some(found_by(host)?);
        Some(FoundHost { host, found_by })
    })
    .collect()
}
