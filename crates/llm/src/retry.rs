//! Retry decision for a failed request.
//!
//! A pure function of the server's response, the number of retries and a random number, so that
//! each case is one line in a test. The rules follow the providers' own client libraries: two
//! retries; connection errors, 408, 409, 429 and 5xx (including 529) are retried; `x-should-retry`
//! and the server's waiting times are obeyed. Two rules are our own. A spending limit is never
//! retried, although some providers report it as 429. A wait beyond the time limit fails at once.

use std::time::Duration;

use chrono::DateTime;
use reqwest::header::HeaderMap;

use super::error::Fault;

/// Retry policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Maximum number of retries; 2 by default.
    pub max_retries: u32,
    /// First pause if the server requests none; doubles each time. 500 ms by default.
    pub first_pause: Duration,
}

/// Maximum pause if the server requests none.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Maximum wait that a server may request.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            first_pause: Duration::from_millis(500),
        }
    }
}

/// Retry decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Retry after this pause.
    Retry(Duration),
    /// A retry is pointless, or all retries are used up.
    GiveUp,
    /// The account has reached its spending limit.
    SpendLimit,
    /// The server requests a wait that is too long.
    WaitTooLong(Duration),
}

/// Decides on a failure after `retries` earlier retries.
///
/// `left` is the remaining time limit, and `random` is in `0.0..1.0`.
pub(super) fn decide(
    policy: &Policy,
    retries: u32,
    fault: &Fault,
    left: Duration,
    random: f64,
) -> Decision {
    let server_wait = match fault {
        Fault::Status {
            status,
            headers,
            code,
            message,
        } => {
            if is_spend_limit(*status, code, message) {
                return Decision::SpendLimit;
            }
            let worth_it = match text(headers, "x-should-retry") {
                Some("true") => true,
                Some("false") => false,
                _ => matches!(status, 408 | 409 | 429) || *status >= 500,
            };
            if !worth_it {
                return Decision::GiveUp;
            }
            retry_after(headers)
        }
        _ => None,
    };
    let limit = LONGEST_WAIT.min(left);
    match server_wait {
        Some(wait) if wait > limit => Decision::WaitTooLong(wait),
        _ if retries >= policy.max_retries => Decision::GiveUp,
        Some(wait) => Decision::Retry(wait),
        None => {
            let pause = policy
                .first_pause
                .saturating_mul(2_u32.saturating_pow(retries))
                .min(LONGEST_PAUSE);
            let pause = pause.mul_f64(1.0 - random.clamp(0.0, 1.0) * 0.25);
            if pause < left {
                Decision::Retry(pause)
            } else {
                Decision::GiveUp
            }
        }
    }
}

fn is_spend_limit(status: u16, code: &str, message: &str) -> bool {
    status == 402
        || matches!(
            code,
            "enforced_spend_limit_reached"
                | "contract_spend_limit_reached"
                | "linked_organization_spend_limit_reached"
                | "insufficient_quota"
                | "credit_balance_exhausted"
                | "billing_hard_limit_reached"
                | "billing_error"
        )
        // Reported as a plain 400 without a specific code.
        || message.contains("credit balance is too low")
}

/// Wait that the server requests: milliseconds, else seconds, else a date relative to the
/// response's own `date`, which makes the local clock irrelevant.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    if let Some(wait) = text(headers, "retry-after-ms").and_then(|t| number(t, 0.001)) {
        return Some(wait);
    }
    let value = text(headers, "retry-after")?;
    number(value, 1.0).or_else(|| {
        let until = DateTime::parse_from_rfc2822(value).ok()?;
        let now = DateTime::parse_from_rfc2822(text(headers, "date")?).ok()?;
        (until - now).max(chrono::TimeDelta::zero()).to_std().ok()
    })
}

fn number(text: &str, unit: f64) -> Option<Duration> {
    let seconds = text.trim().parse::<f64>().ok()? * unit;
    Duration::try_from_secs_f64(seconds).ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn fault(status: u16, pairs: &[(&'static str, &'static str)]) -> Fault {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        Fault::Status {
            status,
            headers: Box::new(pairs.collect()),
            code: String::new(),
            message: String::new(),
        }
    }

    fn no_answer() -> Fault {
        Fault::Broken {
            reason: String::new(),
            text: String::new(),
        }
    }

    fn decide_on(retries: u32, fault: &Fault) -> Decision {
        let left = Duration::from_secs(100);
        decide(&Policy::default(), retries, fault, left, 0.0)
    }

    const fn retry(ms: u64) -> Decision {
        Decision::Retry(Duration::from_millis(ms))
    }

    #[test]
    fn only_passing_troubles_are_worth_a_retry() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert_eq!(decide_on(0, &fault(status, &[])), retry(500), "{status}");
        }
        assert_eq!(decide_on(0, &no_answer()), retry(500));
        for status in [302, 400, 401, 403, 404, 413, 422] {
            assert_eq!(
                decide_on(0, &fault(status, &[])),
                Decision::GiveUp,
                "{status}"
            );
        }
    }

    #[test]
    fn pauses_double_shrink_at_random_and_end_after_two() {
        assert_eq!(decide_on(1, &fault(500, &[])), retry(1000));
        assert_eq!(decide_on(2, &fault(500, &[])), Decision::GiveUp);
        let many = Policy {
            max_retries: 1000,
            ..Policy::default()
        };
        let check = |retries, random, expected| {
            let left = Duration::from_secs(100);
            let decision = decide(&many, retries, &no_answer(), left, random);
            assert_eq!(decision, expected, "{retries} {random}");
        };
        check(0, 1.0, retry(375));
        check(3, 0.5, retry(3500));
        check(4, 0.0, retry(8000));
        check(999, 0.0, retry(8000));
    }

    #[test]
    fn the_server_may_decide_and_name_the_wait() {
        let check = |status, pairs: &[_], expected| {
            assert_eq!(
                decide_on(0, &fault(status, pairs)),
                expected,
                "{status} {pairs:?}"
            );
        };
        check(400, &[("x-should-retry", "true")], retry(500));
        check(529, &[("x-should-retry", "false")], Decision::GiveUp);
        check(429, &[("retry-after", "3")], retry(3000));
        check(429, &[("retry-after", "0")], retry(0));
        check(
            429,
            &[("retry-after-ms", "20"), ("retry-after", "3")],
            retry(20),
        );
        check(429, &[("retry-after", "soon")], retry(500));
        check(429, &[("retry-after", "-4")], retry(500));
        check(429, &[("retry-after", "nan")], retry(500));
        let date = ("date", "Sat, 21 Nov 2026 07:28:00 GMT");
        let until = ("retry-after", "Sat, 21 Nov 2026 07:28:07 GMT");
        check(429, &[date, until], retry(7000));
        // Without the server's `date`, a retry date is ignored.
        check(429, &[until], retry(500));
        // A past date means no wait.
        let past = ("retry-after", "Sat, 21 Nov 2026 07:00:00 GMT");
        check(429, &[date, past], retry(0));
    }

    #[test]
    fn a_wait_that_is_too_long_ends_the_question_at_once() {
        let day = Duration::from_hours(24);
        let headers = [("retry-after", "86400")];
        assert_eq!(
            decide_on(0, &fault(429, &headers)),
            Decision::WaitTooLong(day)
        );
        assert_eq!(
            decide_on(0, &fault(429, &[("retry-after", "1e300")])),
            retry(500),
            "no number of seconds"
        );
        let fault = fault(429, &[("retry-after", "30")]);
        let left = Duration::from_secs(10);
        let decision = decide(&Policy::default(), 0, &fault, left, 0.0);
        assert_eq!(decision, Decision::WaitTooLong(Duration::from_secs(30)));
    }

    #[test]
    fn spending_limits_are_never_retried() {
        let check = |status, code: &str, message: &str| {
            let fault = Fault::Status {
                status,
                headers: Box::default(),
                code: code.to_owned(),
                message: message.to_owned(),
            };
            let decision = decide_on(0, &fault);
            assert_eq!(decision, Decision::SpendLimit, "{status} {code} {message}");
        };
        check(429, "enforced_spend_limit_reached", "");
        check(429, "contract_spend_limit_reached", "");
        check(402, "linked_organization_spend_limit_reached", "");
        check(429, "insufficient_quota", "");
        check(429, "credit_balance_exhausted", "");
        check(402, "", "");
        check(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
        );
    }
}
