//! Traces of runs: one line of OTLP/JSON each, in a file that collectors and `learn` read.
//!
//! A trace gives the model, the cost and the rules in the prompt. Input and output are included on
//! request only. Secrets are redacted in any case.

use std::path::PathBuf;

use serde_json::value::RawValue;

use crate::guard;
use crate::model::{Execution, Kind, Outcome};
use crate::prompt::ids_of;
use crate::transcript::otlp::{Traced, line};

use super::RunReport;
use crate::workspace::Workspace;
use crate::workspace::error::chain;
use crate::workspace::{Error, redacting_writer};

/// Options of [`trace()`].
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// File to append to.
    pub file: PathBuf,
    /// `true` to include the input and the output.
    pub with_content: bool,
    /// Name of the service.
    pub service: String,
    /// Parent trace and span, in the format of `TRACEPARENT`.
    pub parent: Option<String>,
}

/// Appends the trace of a run, which may have failed. Returns the kinds of the secrets
/// redacted.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn trace(
    workspace: &Workspace,
    options: &TraceOptions,
    skill: &str,
    session: Option<&str>,
    input: Option<&RawValue>,
    came: Result<&RunReport, &Error>,
) -> Result<Vec<&'static str>, Error> {
    let digits = |count: usize| -> String {
        let random = (workspace.random)();
        random
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(count)
            .collect()
    };
    let above = options.parent.as_deref().and_then(parent);
    let start = workspace
        .now
        .timestamp_nanos_opt()
        .and_then(|at| u64::try_from(at).ok());
    let mut run = Traced {
        trace: above.map_or_else(|| digits(32), |(trace, _)| trace.to_owned()),
        span: digits(16),
        parent: above.map(|(_, span)| span.to_owned()),
        service: options.service.clone(),
        skill: skill.to_owned(),
        start: start.unwrap_or(0),
        session: session.map(str::to_owned),
        ..Traced::default()
    };
    let mut content: (Option<String>, Option<String>) = (input.map(|i| i.get().to_owned()), None);
    match came {
        Ok(report) => {
            run.model.clone_from(&report.model_used);
            run.latency_ms = report.latency_ms;
            run.cost_usd = report.cost_usd;
            run.input_tokens = report.usage.map(|usage| usage.input_tokens);
            run.output_tokens = report.usage.map(|usage| usage.output_tokens);
            run.execution_id.clone_from(&report.execution_id);
            run.injected = ids_of(&report.injected, Kind::Reflexion);
            content.1 = Some(report.output.get().to_owned());
        }
        Err(error) => {
            run.error = Some(chain(error));
            // The record of the failed run holds the details.
            if let Error::Asked { execution, .. } = error
                && let Ok(known) = workspace.store.get::<Execution>(execution)
            {
                debug_assert_eq!(known.outcome, Outcome::Error);
                run.model = known.model_used;
                run.latency_ms = known.latency_ms.unwrap_or(0.0);
                run.cost_usd = known.cost_usd;
                run.input_tokens = known.usage.map(|usage| usage.input_tokens);
                run.output_tokens = known.usage.map(|usage| usage.output_tokens);
                run.injected = known.reflexions_injected;
                run.execution_id = Some(known.execution_id);
            }
        }
    }
    let mut found = Vec::new();
    if options.with_content {
        let mut clean = |text: Option<String>| {
            let redacted = guard::redact_json(text.as_deref()?);
            found.extend(&redacted.found);
            Some(redacted.text.into_owned())
        };
        run.input = clean(content.0);
        run.output = clean(content.1);
    }
    found.extend(redacting_writer::append_line(&options.file, &line(&run))?);
    Ok(found)
}

/// Parses a W3C `traceparent`, `00-<32 digits>-<16 digits>-01`, into trace and span.
fn parent(traceparent: &str) -> Option<(&str, &str)> {
    let mut parts = traceparent.split('-');
    let (_, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is_id = |text: &str, length: usize| {
        text.len() == length
            && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && text.bytes().any(|b| b != b'0')
    };
    (is_id(trace, 32) && is_id(span, 16)).then_some((trace, span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_names_a_trace_and_a_span() {
        let check = |text: &str, expected| assert_eq!(parent(text), expected, "{text}");
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        check(&format!("00-{trace}-{span}-01"), Some((trace, span)));
        check(&format!("00-{trace}-0000000000000000-01"), None);
        check(&format!("00-{}-{span}-01", trace.to_uppercase()), None);
        check(&format!("00-{trace}"), None);
        check("", None);
    }
}
