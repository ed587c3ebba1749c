//! Stores the rules that people's messages to agents propose, as candidates.
//!
//! A candidate acts on nothing until a person approves it. A rule that is said again is counted up,
//! once for each message. A rule that is in force, was replaced or was deleted is not proposed
//! again. A message that looks like a prompt injection proposes nothing.

use serde::Serialize;
use serde_json::json;

use crate::guard;
use crate::learn::chat::{Proposal, propose};
use crate::learn::plain_words::plain_words;
use crate::model::{CANDIDATE, CHAT, Kind, Record as _, Reflexion, Remark, Said, Speaker, Step};
use crate::rules::passed_on::UNUSED;
use crate::store::{Selection, Writer};
use crate::workspace::{Error, stamp};

use super::learn::{clean, redacted};

/// Maximum length of the last call, in bytes.
const AFTER: usize = 120;
/// Turn of a message in a session that is still running: a hook does not know how many came before.
const RUNNING: u64 = 0;

/// Rule heard in a session.
#[derive(Debug)]
pub(crate) struct ChatRule {
    proposal: Proposal,
    turn: u64,
    after: String,
    /// Project of the session; empty if unknown.
    workspace: String,
}

/// Listens to the messages of a session, in order.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    turns: u64,
    /// Last call of the agent, on one line.
    last: Option<String>,
    /// Name of the working directory of the first call. Agents enter other directories later, and
    /// the person speaks about the project.
    project: Option<String>,
    heard: Vec<ChatRule>,
}

impl Listener {
    /// Notes a call. Calls of subagents are not known to the person.
    pub(crate) fn step(&mut self, step: &Step) {
        if !step.side {
            let call = format!("{}: {}", step.tool, step.call_text());
            let call = call.split_whitespace().collect::<Vec<_>>().join(" ");
            self.last = Some(call);
        }
        if self.project.is_none() {
            let path = step.cwd.as_deref().unwrap_or_default();
            let name = path.trim_end_matches('/').rsplit('/').next();
            self.project = name.filter(|name| !name.is_empty()).map(redacted);
        }
    }

    /// Reads a message; only the person's own count.
    pub(crate) fn remark(&mut self, remark: &Remark) {
        if remark.by != Speaker::User {
            return;
        }
        self.turns += 1;
        let Some(proposal) = proposal(&remark.text) else {
            return;
        };
        let after = self.last.clone().unwrap_or_default();
        self.heard.push(ChatRule {
            proposal,
            turn: self.turns,
            after: clean(&after).cut(AFTER),
            workspace: String::new(),
        });
    }

    /// Returns what was heard in the session.
    pub(crate) fn finish(mut self) -> Vec<ChatRule> {
        let project = self.project.unwrap_or_default();
        for heard in &mut self.heard {
            heard.workspace.clone_from(&project);
        }
        self.heard
    }
}

/// Returns the rule that a message proposes; `None` for one that looks like a prompt injection.
fn proposal(message: &str) -> Option<Proposal> {
    let proposal = propose(&clean(message).into_string())?;
    let is_clean = guard::admit(&proposal.quote).quarantine.is_none();
    is_clean.then_some(proposal)
}

/// Returns `true` if a message proposes a rule.
pub(crate) fn proposes_rule(message: &str) -> bool {
    proposal(message).is_some()
}

/// Reads a message of a running session, of a project; `None` if it proposes no rule. The end of the
/// session adds the turn, and the call before it.
pub(crate) fn hear(message: &str, project: &str) -> Option<ChatRule> {
    let proposal = proposal(message)?;
    Some(ChatRule {
        proposal,
        turn: RUNNING,
        after: String::new(),
        workspace: redacted(project),
    })
}

/// Candidate rule of a session.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CandidateReport {
    /// Id of the rule; `None` if nothing was written.
    pub id: Option<String>,
    /// Words of the person.
    pub quote: String,
    /// Proposed rule.
    pub rule: String,
    /// Probability of a standing correction, from 0 to 1, as the model estimates it.
    pub sureness: f64,
    /// Session id, or the file name of a session without one.
    pub session: String,
    /// Ordinal of the message among those of the person, from 1.
    pub turn: u64,
    /// Number of messages that said it.
    pub times: usize,
    /// Number of sessions that it was said in.
    pub sessions: usize,
}

/// Stores what was heard in a session. Without a writer, only reports it.
pub(super) fn store_heard(
    mut writer: Option<&mut Writer>,
    heard: Vec<ChatRule>,
    session: &str,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<Vec<CandidateReport>, Error> {
    let (mut rules, forgotten) = match &writer {
        Some(writer) => {
            let all = writer.store().list::<Reflexion>(&Selection::default())?;
            (all.records, Some(writer.store().all_forgotten()?))
        }
        None => (Vec::new(), None),
    };
    let mut reports = Vec::new();
    for heard in heard {
        let proposal = heard.proposal;
        let said = Said {
            quote: redacted(&proposal.quote),
            session: redacted(session),
            workspace: heard.workspace,
            turn: heard.turn,
            after: heard.after,
        };
        let text = redacted(&proposal.rule);
        let key = words(&text);
        let known = rules.iter_mut().find(|rule| words(&rule.rule) == key);
        let rule = match (known, writer.as_deref_mut()) {
            (Some(rule), _) if !rule.is_candidate() => continue,
            (Some(rule), writer) => {
                if !say_again(rule, said.clone()) {
                    continue;
                }
                if let Some(writer) = writer {
                    let changes = [("said", json!(rule.said))];
                    writer.update(Kind::Reflexion, &rule.reflexion_id, &changes)?;
                }
                &*rule
            }
            (None, writer) => {
                let rule = candidate(text, proposal.sureness, said.clone(), now);
                let is_gone = |content: &str| {
                    let forgotten = forgotten.as_ref();
                    forgotten.is_some_and(|all| all.has_content(Kind::Reflexion, content))
                };
                // Tombstones of rules know the rule on one line.
                if is_gone(&rule.summary()) {
                    continue;
                }
                rules.push(match writer {
                    Some(writer) => writer.append(rule, now)?,
                    None => rule,
                });
                &rules[rules.len() - 1]
            }
        };
        reports.push(CandidateReport {
            id: (!rule.reflexion_id.is_empty()).then(|| rule.reflexion_id.clone()),
            quote: said.quote,
            rule: rule.rule.clone(),
            sureness: proposal.sureness,
            session: said.session,
            turn: said.turn,
            times: rule.said.len(),
            sessions: rule.sessions(),
        });
    }
    Ok(reports)
}

/// Words of a rule for comparison.
fn words(text: &str) -> String {
    plain_words(text).join(" ")
}

/// Adds a message to a candidate. Returns `false` if the message is counted already.
fn say_again(rule: &mut Reflexion, said: Said) -> bool {
    let mut of_session = rule.said.iter_mut().filter(|k| k.session == said.session);
    let known = of_session.find(|known| {
        if known.turn == RUNNING || said.turn == RUNNING {
            known.quote == said.quote
        } else {
            known.turn == said.turn
        }
    });
    match known {
        // The session file knows more than the hook did.
        Some(known) if known.turn == RUNNING && said.turn != RUNNING => *known = said,
        Some(_) => return false,
        None => rule.said.push(said),
    }
    true
}

/// Candidate rule of the project: without skill, and without correction.
fn candidate(
    text: String,
    sureness: f64,
    said: Said,
    now: chrono::DateTime<chrono::Utc>,
) -> Reflexion {
    Reflexion {
        reflexion_id: String::new(),
        skill: String::new(),
        created_at: stamp(now),
        correction_id: String::new(),
        mistake: String::new(),
        root_cause: String::new(),
        rule: text,
        applies_when: String::new(),
        confidence: Some((sureness * 100.0).round() / 100.0),
        validated_by_test: false,
        generated_test_ids: Vec::new(),
        partial_test_ids: Vec::new(),
        breaks_test_ids: Vec::new(),
        distilled_by: "offline".to_owned(),
        utility_score: Some(UNUSED),
        times_injected: None,
        times_helped: None,
        times_harmed: None,
        seen_by: Vec::new(),
        action: crate::model::CallAction::Note,
        check: None,
        check_fired: None,
        check_overridden: None,
        check_needless: None,
        source: CHAT.to_owned(),
        said: vec![said],
        also_corrected_by: Vec::new(),
        superseded_by: String::new(),
        status: CANDIDATE.to_owned(),
        guardrails_pending: Vec::new(),
        pinned: false,
        relations: Vec::new(),
        judgement: None,
        observed: false,
    }
}
