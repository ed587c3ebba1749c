//! Explains a record: its origin and its effects.
//!
//! The chain is a tree from the requested record: first its causes, then its effects. Upward steps follow only
//! causes and downward steps only effects, so that a chain does not become the whole store. Executions are its
//! ends. Each record is followed once. The outgoing links of a record are data ([`Leads`]): one function for each
//! kind collects them, and [`Walk::visit`] alone follows them. The table of [`runs`] finds the executions
//! that refer to a record. A scan of the file of their kind finds other records, because one correction or
//! rule has many executions. Only entries whose text contains the id are parsed as JSON.
//!
//! A link to a removed record is shown. Within a scope it is hidden, because a removed record and a
//! record of others look alike there.
//!
//! Out of scope: guesses. A link is a reference between records, never a similarity.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use memctl_files::json;
use serde::Serialize;

use crate::model::words::names;
use crate::model::{
    Correction, Evidence, Execution, Kind, Procedure, Record, Reflexion, Said, Trust, utc,
};
use crate::store::workspace::{Error, Workspace, document, locate};
use crate::store::{Entry, Scoped, Selection, TrustSnapshot, shown_project};
use crate::upkeep::stats::runs;
use crate::upkeep::status::damage;

/// Outcome of [`why()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct WhyReport {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Links in tree order: the record, and after each link those that it leads to.
    pub chain: Vec<Link>,
    /// Evidence of the record. For an execution or a correction: evidence of the rules that came from it.
    pub evidence: Evidence,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Record, test or session in a chain.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Link {
    /// Id of the record, host id of the session, or name of the test.
    pub id: String,
    /// Kind of the record, or `test`, or `transcript`.
    pub kind: &'static str,
    /// Relation to the link `to`.
    pub relation: Relation,
    /// Id of the link that led here; `None` for the requested record.
    pub to: Option<String>,
    /// Time of creation or removal: RFC 3339, UTC. Empty if unknown.
    pub at: String,
    /// Text on one line.
    pub summary: String,
    /// State: the outcome of an execution; `candidate`, `superseded`, `retired`, `quarantined`,
    /// `episode` or `approved`; `forgotten` with a tombstone, or `missing` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Trust level of a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Status of a rule or a procedure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Source, if the record names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Number of executions with a rule in their prompt; the newest follow as links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// Number of places where a procedure was seen; the newest follow as links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<u64>,
    /// Number of links between this one and the requested record.
    #[serde(skip)]
    pub depth: usize,
}

names! {
    /// Relation of one link to another.
    #[derive(Default, schemars::JsonSchema)]
    #[expect(missing_docs, reason = "the names are the definition")]
    Relation {
        /// Requested record.
        #[default]
        Asked = "asked",
        HadRule = "had_rule",
        HadProcedure = "had_procedure",
        Repeats = "repeats",
        CorrectedBy = "corrected_by",
        Corrects = "corrects",
        Became = "became",
        Strengthened = "strengthened",
        DistilledFrom = "distilled_from",
        StrengthenedBy = "strengthened_by",
        Supersedes = "supersedes",
        SupersededBy = "superseded_by",
        ValidatedBy = "validated_by",
        InjectedInto = "injected_into",
        SeenIn = "seen_in",
        /// Session in which an agent was told it.
        ToldIn = "told_in",
        /// Message of a person that a rule was heard in.
        SaidIn = "said_in",
    }
}

impl Relation {
    /// Returns the relation in words, to be followed by the id.
    pub fn words(self) -> String {
        match self {
            Self::Asked => String::new(),
            Self::HadRule => "had the rule".to_owned(),
            Self::HadProcedure => "had the lesson".to_owned(),
            other => other.name().replace('_', " "),
        }
    }

    /// Returns `true` if the evidence of such a link counts for the requested record.
    const fn counts(self) -> bool {
        matches!(self, Self::Asked | Self::Became | Self::Strengthened)
    }
}

/// Explains the origin and the effects of a record. `id` is an id, also of a pulled record, an id
/// prefix, or `latest`.
pub fn why(workspace: &Workspace, id: &str) -> Result<WhyReport, Error> {
    let (workspace, id) = &workspace.of_id(id)?;
    let (kind, id) = locate(&workspace.store, id)?;
    let mut walk = Walk::new(&workspace.store);
    walk.visit(
        link(&id, kind.name(), Relation::Asked),
        kind,
        Direction::Both,
    )?;
    let read = walk.read.iter();
    let unnoted =
        workspace.note_read(read.map(|(kind, id, user)| (*kind, (id.as_str(), user.as_deref()))));
    let warnings = damage(&workspace.store).unwrap_or_default().into_iter();
    Ok(WhyReport {
        id,
        kind,
        warnings: warnings.chain(unnoted).collect(),
        chain: walk.chain,
        evidence: walk.evidence,
    })
}

/// Maximum number of executions of a rule, and of origins of a procedure, in a chain: the newest.
const NAMED: usize = 3;

/// Link of which nothing but its id is known.
fn link(id: &str, kind: &'static str, relation: Relation) -> Link {
    Link {
        id: id.to_owned(),
        kind,
        relation,
        ..Link::default()
    }
}

/// Direction in which links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// Causes, then effects.
    Both,
    /// Causes only.
    Up,
    /// Effects only.
    Down,
    /// No further links.
    End,
}

impl Direction {
    const fn is_up(self) -> bool {
        matches!(self, Self::Both | Self::Up)
    }

    const fn is_down(self) -> bool {
        matches!(self, Self::Both | Self::Down)
    }
}

/// Links that lead on from a record, in order, each with the direction in which it is followed.
#[derive(Debug, Default)]
struct Leads(Vec<(Link, Direction)>);

impl Leads {
    /// Adds links to the records with these ids. Other texts are left out.
    fn records(
        &mut self,
        relation: Relation,
        ids: impl IntoIterator<Item = String>,
        way: Direction,
    ) {
        for id in ids {
            if let Some(kind) = Kind::of_id(&id) {
                self.0.push((link(&id, kind.name(), relation), way));
            }
        }
    }

    /// Adds a link to a test or a transcript.
    fn other(&mut self, relation: Relation, kind: &'static str, id: &str, summary: String) {
        let link = Link {
            summary,
            ..link(id, kind, relation)
        };
        self.0.push((link, Direction::End));
    }
}

/// Walk over the links of a record.
pub(crate) struct Walk<'a> {
    store: &'a Scoped,
    trust_snapshot: TrustSnapshot,
    /// Links, from the record itself.
    pub(crate) chain: Vec<Link>,
    /// Ids visited so far; each is followed once.
    met: HashSet<String>,
    /// Evidence that counts for the record.
    pub(crate) evidence: Evidence,
    /// Records in the chain, each once, with their users.
    pub(crate) read: Vec<(Kind, String, Option<String>)>,
}

impl<'a> Walk<'a> {
    fn new(store: &'a Scoped) -> Self {
        Self {
            store,
            trust_snapshot: store.trust_snapshot(),
            chain: Vec::new(),
            met: HashSet::new(),
            evidence: Evidence::default(),
            read: Vec::new(),
        }
    }

    /// Adds a record to the chain, and what leads on from it.
    fn visit(&mut self, mut link: Link, kind: Kind, way: Direction) -> Result<(), Error> {
        let id = link.id.clone();
        let (depth, counts) = (link.depth, link.relation.counts());
        let Some(entry) = self.store.find(kind, &id)? else {
            return self.missing(kind, link);
        };
        if let Some(document) = document(&entry) {
            link.at = utc(&document.created);
            link.summary = document.summary;
            link.trust = Some(self.trust_snapshot.of_entry(&entry, document.trust));
            link.status = document.status;
            link.source = document.source;
        }
        let is_new = self.met.insert(id.clone());
        if is_new {
            let user = entry.user_id().map(Cow::into_owned);
            self.read.push((kind, id.clone(), user));
        }
        let way = if is_new { way } else { Direction::End };
        let mut evidence = Evidence::default();
        let leads = self.leads(&entry, &mut link, &mut evidence, way)?;
        self.chain.push(link);
        self.follow(leads, &id, depth)?;
        if is_new && counts {
            self.evidence.shown += evidence.shown;
            self.evidence.helped += evidence.helped;
            self.evidence.harmed += evidence.harmed;
        }
        Ok(())
    }

    /// Follows the links that lead on from a record.
    fn follow(&mut self, leads: Leads, from: &str, depth: usize) -> Result<(), Error> {
        for (mut link, way) in leads.0 {
            link.to = Some(from.to_owned());
            link.depth = depth + 1;
            match Kind::of_id(&link.id).filter(|kind| kind.name() == link.kind) {
                Some(kind) => self.visit(link, kind, way)?,
                None => self.chain.push(link),
            }
        }
        Ok(())
    }

    /// Adds a link to a record that is not there.
    fn missing(&mut self, kind: Kind, mut link: Link) -> Result<(), Error> {
        if !self.store.sees_all() {
            return Ok(());
        }
        let state = match self.store.tombstone(kind, &link.id)? {
            Some(tombstone) => {
                link.at = tombstone.at;
                "forgotten"
            }
            None => "missing",
        };
        link.state = Some(state.to_owned());
        self.chain.push(link);
        Ok(())
    }

    /// Returns what leads on from an entry, and describes it; nothing if it is no valid record.
    fn leads(
        &self,
        entry: &Entry,
        link: &mut Link,
        evidence: &mut Evidence,
        way: Direction,
    ) -> Result<Leads, Error> {
        fn of<R: Record>(
            entry: &Entry,
            leads: impl FnOnce(R) -> Result<Leads, Error>,
        ) -> Result<Leads, Error> {
            entry.parse().map_or_else(|_| Ok(Leads::default()), leads)
        }
        match entry.kind {
            Kind::Execution => of(entry, |one| self.execution(&one, link, way)),
            Kind::Correction => of(entry, |one| self.correction(one, &link.id, way)),
            Kind::Reflexion => of(entry, |one: Reflexion| {
                *evidence = one.evidence();
                self.rule(one, link, way)
            }),
            Kind::Procedure => of(entry, |one: Procedure| {
                *evidence = one.evidence();
                self.procedure(&one, link, way)
            }),
            Kind::Session | Kind::Memory => Ok(Leads::default()),
        }
    }

    fn execution(&self, run: &Execution, link: &mut Link, way: Direction) -> Result<Leads, Error> {
        link.state = Some(run.outcome.as_str().to_owned());
        let mut leads = Leads::default();
        let id = link.id.as_str();
        if way != Direction::Both {
            return Ok(leads);
        }
        let case = run.nearest_case.as_ref().map(|case| case.source.clone());
        let corrections = self.naming(id, |one: Correction| {
            (one.execution_id == id).then_some(one.correction_id)
        })?;
        for (id, created) in run.injected() {
            let (relation, way) = match Kind::of_id(id) {
                Some(Kind::Procedure) => (Relation::HadProcedure, Direction::End),
                _ => (Relation::HadRule, Direction::Up),
            };
            leads.records(relation, [self.id_now(id, created)?], way);
        }
        leads.records(Relation::Repeats, case, Direction::End);
        leads.records(Relation::CorrectedBy, corrections, Direction::Down);
        Ok(leads)
    }

    /// Returns the id of a record of a prompt: after a merge it may have another one. A record that is not here, as on
    /// another branch, keeps its id, with its time.
    fn id_now(&self, id: &str, created: &str) -> Result<String, Error> {
        let Some(kind) = Kind::of_id(id).filter(|_| !created.is_empty()) else {
            return Ok(id.to_owned());
        };
        Ok(match self.store.find_created(kind, id, created)? {
            Some(entry) => entry.id,
            None if self.store.find(kind, id)?.is_some() => format!("{id} of {created}"),
            None => id.to_owned(),
        })
    }

    fn correction(&self, correction: Correction, id: &str, way: Direction) -> Result<Leads, Error> {
        let mut leads = Leads::default();
        if way.is_up() {
            let execution = [correction.execution_id];
            leads.records(Relation::Corrects, execution, Direction::End);
        }
        if way.is_down() {
            let rules = self.naming(id, |rule: Reflexion| {
                let is_strengthened = || rule.also_corrected_by.iter().any(|one| one == id);
                if rule.correction_id == id {
                    Some((Relation::Became, rule.reflexion_id))
                } else {
                    is_strengthened().then_some((Relation::Strengthened, rule.reflexion_id))
                }
            })?;
            for (relation, rule) in rules {
                leads.records(relation, [rule], Direction::Down);
            }
        }
        Ok(leads)
    }

    fn rule(&self, rule: Reflexion, link: &mut Link, way: Direction) -> Result<Leads, Error> {
        let terms = runs::with_record(&link.id, &rule.merged_from, &rule.created_at);
        link.state = match rule.state() {
            "active" => Some(rule.receipts().words()).filter(|words| !words.is_empty()),
            state => Some(state.to_owned()),
        };
        let mut leads = Leads::default();
        if way.is_up() {
            let first = [rule.correction_id];
            leads.records(Relation::DistilledFrom, first, Direction::Up);
            let later = rule.also_corrected_by;
            leads.records(Relation::StrengthenedBy, later, Direction::Up);
        }
        if way == Direction::Both {
            for source in rule.said.iter().rev().take(NAMED) {
                leads.other(
                    Relation::SaidIn,
                    "transcript",
                    &source.session,
                    message(source),
                );
            }
            self.told(&link.id, &mut leads)?;
            let older = self.naming(&link.id, |older: Reflexion| {
                (older.superseded_by == link.id).then_some(older.reflexion_id)
            })?;
            leads.records(Relation::Supersedes, older, Direction::End);
        }
        if way.is_down() {
            let newer = [rule.superseded_by];
            leads.records(Relation::SupersededBy, newer, Direction::End);
            for test in rule.generated_test_ids {
                leads.other(Relation::ValidatedBy, "test", &test, String::new());
            }
            self.injections(link, &terms, &mut leads)?;
        }
        Ok(leads)
    }

    fn procedure(&self, one: &Procedure, link: &mut Link, way: Direction) -> Result<Leads, Error> {
        let is_approved = self.trust_snapshot.level(one) == Trust::Approved;
        link.state = match one.state.as_str() {
            "" | "active" => is_approved.then(|| "approved".to_owned()),
            state => Some(state.to_owned()),
        };
        let mut leads = Leads::default();
        if way != Direction::Both {
            return Ok(leads);
        }
        let terms = runs::with_record(&link.id, &one.merged_from, &one.created_at);
        self.injections(link, &terms, &mut leads)?;
        // Most procedures were in no prompt.
        link.executions = link.executions.filter(|count| *count > 0);
        link.origins = Some(one.origins.len() as u64);
        for origin in one.origins.iter().rev().take(NAMED) {
            let place = in_project(&origin.workspace);
            leads.other(Relation::SeenIn, "transcript", &origin.session, place);
        }
        self.told(&link.id, &mut leads)?;
        Ok(leads)
    }

    /// Adds links to the newest executions whose prompt held a record, and counts them all.
    fn injections(&self, link: &mut Link, terms: &[u64], leads: &mut Leads) -> Result<(), Error> {
        let table = runs::table(self.store)?;
        let places = terms
            .iter()
            .flat_map(|term| table.holding(*term, usize::MAX));
        let places: BTreeSet<u32> = places.collect();
        let mut places: Vec<u32> = places.into_iter().rev().collect();
        if !self.store.sees_all() {
            places.retain(|place| table.entry(*place).is_some());
        }
        link.executions = Some(places.len() as u64);
        let newest = places.into_iter().filter_map(|place| table.entry(place));
        let newest = newest.take(NAMED).map(|run| run.id);
        leads.records(Relation::InjectedInto, newest, Direction::End);
        Ok(())
    }

    /// Adds links to the newest sessions in which an agent was told a record.
    fn told(&self, id: &str, leads: &mut Leads) -> Result<(), Error> {
        let name = format!("\"{id}\"");
        let mut sessions: HashSet<Option<String>> = HashSet::new();
        let lines = self.store.logs_of_delivered(NAMED, &mut |line| {
            let told = line.output_data.as_ref();
            told.is_some_and(|told| told.get().contains(&name))
                && sessions.insert(line.session_id.clone())
        })?;
        for line in lines.lines.into_iter().rev() {
            let input = line.input_data.as_ref().map_or("", |input| input.get());
            let at = json::string_field(input.as_bytes(), "at");
            let moment = match line.step_name.as_str() {
                "hint" => "at a failing call",
                _ if at.as_deref() == Some("start") => "at the start",
                _ => "at a call",
            };
            let tool = line.tool_name.map(|tool| format!(" of {tool}"));
            let session = line.session_id.unwrap_or_default();
            // The file of a session has its name without the host.
            let session = session.split_once('/').map_or(&*session, |(_, id)| id);
            let told = Link {
                summary: format!("{moment}{}", tool.unwrap_or_default()),
                at: utc(&line.created_at),
                ..link(session, "transcript", Relation::ToldIn)
            };
            leads.0.push((told, Direction::End));
        }
        Ok(())
    }

    /// Returns what `take` takes from the records of a type that name an id, oldest first.
    fn naming<R: Record, T>(
        &self,
        id: &str,
        take: impl Fn(R) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let mut found = Vec::new();
        let all = Selection::default();
        self.store.each_entry(R::KIND, &all, &mut |entry| {
            let holds = memchr::memmem::find(&entry.text, id.as_bytes()).is_some();
            let record = holds.then(|| entry.parse().ok()).flatten();
            found.extend(record.and_then(&take));
        })?;
        Ok(found)
    }
}

/// Describes the message that a rule was heard in.
fn message(source: &Said) -> String {
    let place = in_project(&source.workspace);
    let message = format!("message: \"{}\" {place}", source.quote);
    message.trim_end().to_owned()
}

/// Returns the project of a session in words; empty if none is known.
fn in_project(name: &str) -> String {
    match shown_project(name) {
        "" => String::new(),
        name => format!("in `{name}`"),
    }
}
