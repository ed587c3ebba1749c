//! `hooks`: installation of memctl in the settings of agent hosts.

use clap::{Args, Subcommand};

use crate::cli::arguments::{HostArgs, HostsArgs};
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report};
use crate::cli::start::places::{Statuses, installed, obstacles, removed, statuses};
use crate::host::{self, Events, FoundHooks, InstallationStatus, Item, Place};
use crate::rules::{UNREAD, are_unread};

/// Install memctl hooks in an agent host, for failures and session events
///
/// An agent gets lessons and rules at its calls and at the start of a session. Sessions are learned
/// from when they end.
///
/// ```console
/// $ memctl hooks install claude-code
/// $ memctl hooks status
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    Install(InstallArgs),
    /// Remove the hooks; restores the settings byte for byte
    ///
    /// ```console
    /// $ memctl hooks uninstall claude-code
    /// $ memctl hooks uninstall codex --project
    /// ```
    Uninstall(HostArgs<true>),
    /// Show where hooks are installed, the last event of each, and what may block them
    ///
    /// The last event that a hook received, and its answer, show that an agent host calls it. The last
    /// events at which something was told follow, one of each kind.
    /// A settings file that cannot be read does not hide the other agent hosts; the exit code is 1.
    ///
    /// ```console
    /// $ memctl hooks status
    /// $ memctl hooks status codex --project
    /// ```
    Status(HostsArgs<true>),
}

/// Add the hooks to the agent host's settings; keep everything else
///
/// ```console
/// $ memctl hooks install claude-code
/// $ memctl hooks install codex --project
/// $ memctl hooks install claude-code --read-only
/// ```
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    of: HostArgs<true>,
    /// Recall only: the hooks write nothing to the memory, and learn nothing
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn hooks(context: &Context, command: &HooksCommand) -> Done {
    const ITEM: Item = Item::Hooks;
    match command {
        HooksCommand::Install(args) => {
            let HostArgs { host, project } = args.of;
            let of = |_: &Place| Events::of(host);
            let done = installed(context, (ITEM, host, project), args.read_only, of)?;
            Ok(Box::new(done))
        }
        HooksCommand::Uninstall(args) => {
            let done = removed::<Events>(context, (ITEM, args.host, args.project))?;
            Ok(Box::new(done))
        }
        HooksCommand::Status(args) => {
            let store = context.workspace_over_files(None).ok();
            let store = store.filter(|_| context.has_memory());
            let is_unread = store.is_some_and(|workspace| are_unread(&workspace.store));
            let given = (args.host, args.project);
            let found = statuses(context, ITEM, given, |place| {
                let mut found = host::hooks_status(place)?;
                if found.standing != InstallationStatus::Absent {
                    found.of.notes.extend(obstacles(context, place));
                    found.of.notes.extend(is_unread.then(|| UNREAD.to_owned()));
                }
                Ok(found)
            });
            Ok(Box::new(found?))
        }
    }
}

impl Report for Statuses<FoundHooks> {
    fn page(&self, page: &mut Page) {
        self.show(page, "no hooks in", |hooks, page| {
            if hooks.last.is_none() {
                let none = "none yet: start a session in a project with a memory";
                page.field("last event", none);
            }
            let last = hooks.last.iter().map(|one| ("last event", one));
            let told = hooks.last_told.iter().map(|one| ("last told", one));
            // The last event of a session never says anything.
            let told = told.filter(|(_, one)| Some(*one) != hooks.last.as_ref());
            for (label, one) in last.chain(told) {
                let (age, directory) = (page.age(&one.at), page.path(&one.directory));
                page.field(label, &format!("{} ({age}) in {directory}", one.event));
                let told = one
                    .told
                    .as_ref()
                    .map(|told| format!("told \u{201c}{told}\u{201d}"));
                page.field("", told.as_ref().unwrap_or(&one.silent));
            }
            hooks.notes.iter().for_each(|note| page.field("note", note));
        });
    }
}
