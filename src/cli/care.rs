//! `doctor`: check and repair of the store. `config` and `trust`: settings with their sources, and trust in those of a
//! workspace.

use clap::{Args, Subcommand};
use memctl_files::{Directory, named};
use serde::Serialize;

use crate::cli::ask::confirms;
use crate::cli::config::{Setting, digest, prompts};
use crate::cli::context::Context;
use crate::cli::help::SET;
use crate::cli::memory::counted;
use crate::cli::output::{Done, Page, Report, Style, Table, clean, plural};
use crate::cli::start::init;
use crate::model::error::UserError;
use crate::review::{self, Untrusted};
use crate::store::{MERGE_AGAIN, ProblemKind};
use crate::upkeep::{self, DoctorReport};

/// Check the store and repair damage
///
/// ```console
/// $ memctl doctor
/// $ memctl doctor --repair
/// ```
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Repair damaged files; keep a copy of each in `.agentura/recovered/`
    #[arg(long)]
    repair: bool,
}

pub(crate) fn doctor(context: &Context, args: &DoctorArgs) -> Done {
    // Skills can be checked before the first record.
    if !named::is_dir(&context.places.skills) {
        context.needs_memory()?;
    }
    let workspace = context.workspace_over_files(None)?;
    let read = || upkeep::doctor(&workspace, args.repair);
    let mut report = context.printer.during("reading every record", read)?;
    (report.git, report.git_offer) = init::problems(context.project());
    Ok(Box::new(report))
}

impl Report for DoctorReport {
    fn page(&self, page: &mut Page) {
        page.fails_if(!self.healthy);
        for repaired in &self.repaired {
            let (path, copy) = (repaired.path.display(), repaired.copy.display());
            let records = plural(repaired.kept as u64, "record");
            let kept = match repaired.salvaged {
                0 => format!("{records} kept"),
                found => format!("{records} kept, {found} of them from the damage"),
            };
            page.good(
                "repaired ",
                format!("{path}: {kept}; copy of the damaged file: {copy}"),
            );
            if !repaired.lost.is_empty() {
                let ids = repaired.lost.join(", ");
                page.warn(
                    "lost ",
                    format!("{ids}: mend it in the copy, and put that in the place of the file"),
                );
            }
        }
        for problem in &self.problems {
            match problem.kind {
                ProblemKind::Unreadable => page.warn("data: ", problem.to_string()),
                _ => page.bad("data: ", problem.to_string()),
            }
        }
        let own = env!("CARGO_PKG_VERSION");
        let newer = self.newer.iter().map(|file| {
            let (name, format) = (&file.file, file.format);
            format!(
                "`{name}` has format {format}, of a newer memctl: install that again; this one ({own}) only reads it"
            )
        });
        let merge = self.conflicts.iter().map(|conflict| {
            let (id, field) = (&conflict.id, &conflict.field);
            format!("{id}: two branches set `{field}` to different values")
        });
        let (newer, merge): (Vec<_>, Vec<_>) = (newer.collect(), merge.collect());
        for (style, name, found) in [
            (Style::Warn, "format: ", newer.as_slice()),
            (Style::Warn, "merge: ", &merge),
            (Style::Bad, "file: ", &self.irregular),
            (Style::Bad, "merge: ", &self.unmerged),
            (Style::Warn, "reference: ", &self.dangling),
            (Style::Warn, "calls: ", self.late_calls.as_slice()),
            (Style::Warn, "skill: ", &self.skills),
            (Style::Warn, "git: ", &self.git),
            (Style::Dim, "git: ", self.git_offer.as_slice()),
        ] {
            let found = found.iter();
            found.for_each(|one| page.styled(&[(style, name), (Style::Plain, one)]));
        }
        let has = |is: fn(ProblemKind) -> bool| self.problems.iter().any(|one| is(one.kind));
        if !self.has_findings() {
            page.good("No problems found.", "");
        } else if let Some(conflict) = self.conflicts.first() {
            let resolve = format!("memctl memory resolve {} --ours (or --theirs)", conflict.id);
            page.note("hint: ", resolve);
        } else if has(|kind| kind == ProblemKind::Conflict) {
            page.dim(
                "once the merge is committed, only an editor can decide what stays; until then:",
            );
            page.note("hint: ", MERGE_AGAIN);
        } else if has(ProblemKind::is_repairable) {
            // All other problems need a person.
            if has(|kind| kind == ProblemKind::Damage) {
                page.dim("a repair takes out what is broken: to keep it, mend the line in an editor first");
            }
            page.note("hint: ", "memctl doctor --repair");
        }
    }
}

/// Show settings and their sources
///
/// Later wins: defaults, `config.toml` in your configuration directory, `.agentura/config.toml`,
/// variables such as `MEMCTL_MODEL`, flags.
///
/// ```console
/// $ memctl config show
/// $ memctl config show --json
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value and its source
    ///
    /// Keys are listed as set or not set, and never printed. A setting of a workspace that is not
    /// trusted is ignored if it names a program, a host or a file.
    ///
    /// ```console
    /// $ memctl config show
    /// $ memctl config show --json | jq '.settings[] | {name, value}'
    /// ```
    Show,
}

pub(crate) fn config(context: &Context, command: &ConfigCommand) -> Done<ConfigReport> {
    let ConfigCommand::Show = command;
    let config = context.config()?;
    let held_back = config.held_back.iter().map(|(name, _)| name.clone());
    let keys = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "MEMCTL_LOCAL_API_KEY",
        "MEMCTL_EMBEDDING_API_KEY",
    ];
    // The report says that a key is set, and never its value.
    let state = |name| KeyState {
        name,
        set: context.environment.var(name).is_some(),
    };
    Ok(ConfigReport {
        memory: context.places.memory.display().to_string(),
        skills: context.places.skills.display().to_string(),
        trusted: context.environment.trusts_settings(&context.places.memory),
        held_back: held_back.collect(),
        settings: config.settings,
        keys: keys.map(state).into(),
    })
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ConfigReport {
    memory: String,
    skills: String,
    trusted: bool,
    /// Settings that are ignored until the workspace is trusted.
    held_back: Vec<String>,
    settings: Vec<Setting>,
    keys: Vec<KeyState>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct KeyState {
    name: &'static str,
    set: bool,
}

impl Report for ConfigReport {
    fn page(&self, page: &mut Page) {
        page.field("memory", &self.memory);
        page.field("skills", &self.skills);
        page.field(
            "trusted",
            &match (self.trusted, self.held_back.join(", ")) {
                (true, _) => "yes".to_owned(),
                (false, none) if none.is_empty() => {
                    "not needed: no setting names a program, a host or a file".to_owned()
                }
                (false, held_back) => format!("no; ignored: {held_back}: memctl trust"),
            },
        );
        page.line("");
        let mut table = Table::new("Setting|Value|From");
        for setting in &self.settings {
            let value = Some(setting.value.as_str()).filter(|value| !value.is_empty());
            table.row([setting.name, value.unwrap_or("–"), &setting.origin].map(str::to_owned));
        }
        for key in &self.keys {
            let state = if key.set { "set" } else { "not set" };
            table.row([key.name, state, "environment"].map(str::to_owned));
        }
        page.table(&table);
        page.dim(SET);
    }
}

/// Trust the rules, lessons and settings of this workspace
///
/// A workspace that you created with memctl on this machine is trusted already. In any other (a
/// clone, an archive, a moved directory), rules and lessons reach agents as data only, and settings
/// cannot name programs or hosts. `trust` lists what it would unlock, asks on a terminal, and
/// stores your decision outside the workspace. Settings and prompts are trusted as they are now; a
/// change needs a new decision. `MEMCTL_TRUST=1` trusts everything, for build servers.
///
/// ```console
/// $ memctl trust --dry-run
/// $ memctl trust --origin 3f2a9c1b
/// $ memctl trust --revoke
/// ```
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Trust records pulled from the workspace whose origin has this prefix
    #[arg(long, conflicts_with = "revoke")]
    origin: Option<String>,
    /// Revoke the trust in this workspace and in records pulled into it
    #[arg(long)]
    revoke: bool,
    /// Show what would be unlocked, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn trust(context: &Context, args: &TrustArgs) -> Done<TrustReport> {
    let memory = &context.places.memory;
    Directory::at(memory).check()?;
    context.needs_memory()?;
    if context.environment.state_dir.is_none() {
        return Err(UserError::usage(
            "cannot store the decision: no home directory found",
            "set HOME, or MEMCTL_TRUST=1 for this command",
        ));
    }
    let config = context.config_quietly(None)?;
    let workspace = context.workspace_over_files(None)?;
    let approvals = workspace.store.approvals();
    let mut report = TrustReport {
        directory: memory.display().to_string(),
        digest: digest(memory),
        decision: "none",
        settings: Vec::new(),
        prompts: Vec::new(),
        untrusted: Untrusted::default(),
    };
    if args.revoke {
        if !args.dry_run {
            review::revoke(&workspace)?;
            report.decision = "revoked";
        }
        return Ok(report);
    }
    report.untrusted = review::untrusted(&workspace.store, args.origin.as_deref())?;
    if args.origin.is_none() && !context.environment.trusts_settings(memory) {
        report.settings.clone_from(&config.held_back);
        report.prompts = prompts(memory)
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
    }
    if args.dry_run || !confirmed(context, args, &report)? {
        return Ok(report);
    }
    if let Some(origin) = &args.origin {
        review::trust_origin(&workspace, origin)?;
        report.decision = "origin";
        return Ok(report);
    }
    review::trust(&workspace)?;
    approvals.trust_settings(report.digest.clone(), &mut || (workspace.random)())?;
    report.decision = "standing";
    Ok(report)
}

/// Returns `true` if the user agrees. Without a terminal, the command itself is the decision.
fn confirmed(context: &Context, args: &TrustArgs, report: &TrustReport) -> Result<bool, UserError> {
    if args.yes || !context.is_interactive() || report.is_empty() {
        return Ok(true);
    }
    context.printer.note_page(|page| report.list(page));
    confirms("Trust this?", false)
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct TrustReport {
    directory: String,
    digest: String,
    decision: &'static str,
    settings: Vec<(String, String)>,
    prompts: Vec<String>,
    #[serde(flatten)]
    untrusted: Untrusted,
}

impl TrustReport {
    fn is_empty(&self) -> bool {
        let records = self.untrusted.by_kind();
        self.settings.is_empty()
            && self.prompts.is_empty()
            && records.iter().all(|(_, records)| records.is_empty())
    }

    /// Lists what the decision unlocks.
    fn list(&self, page: &mut Page) {
        if !self.settings.is_empty() {
            page.line("Settings that name programs or hosts:");
            for (name, value) in &self.settings {
                page.line(format!("  {} = {}", clean(name), clean(value)));
            }
        }
        if !self.prompts.is_empty() {
            page.line("Prompts that replace the built-in ones:");
            for name in &self.prompts {
                page.line(format!("  {}", clean(name)));
            }
        }
        for (name, records) in self.untrusted.by_kind() {
            if records.is_empty() {
                continue;
            }
            page.line(format!("{}:", counted(name, records.len() as u64)));
            for record in records {
                let text = record.text.split_whitespace().collect::<Vec<_>>().join(" ");
                let of = record.skill.as_deref().map(|skill| format!(" [{skill}]"));
                let of = of.unwrap_or_default();
                page.line(format!("  {}{of} {}", record.id, clean(&text)));
                if let Some(reason) = &record.suspicious {
                    page.styled(&[(Style::Bad, &format!("    suspicious: {reason}"))]);
                }
            }
        }
    }
}

impl Report for TrustReport {
    fn page(&self, page: &mut Page) {
        self.list(page);
        page.line(match self.decision {
            "standing" => format!("Trusted from now on: {}", self.directory),
            "origin" => "Trusted from now on: records pulled from this workspace".to_owned(),
            "revoked" => format!("No longer trusted: {}", self.directory),
            _ if self.is_empty() => format!("Nothing needs trust: {}", self.directory),
            _ => format!("Not trusted: {}", self.directory),
        });
    }
}
