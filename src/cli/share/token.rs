//! `token`: creation of tokens for `serve`, and location of the secret that signs them.

use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use clap::Args;

use crate::cli::context::{Context, random};
use crate::cli::output::{Done, Page, Report};
use crate::model::UserId;
use crate::model::error::UserError;
use crate::serve::token::{AUDIENCE, Minted, NewToken, Secret, default_file, mint};

/// Create a token for `serve`
///
/// The token gives access as that user, in those domains, until it expires: treat it like a
/// password. `serve` reads the secret that signs it. Without a file, both use a secret of this
/// workspace, which is created on first use in your data directory, outside the workspace. To
/// revoke all tokens, delete that file and restart `serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl token --sub ann --scope hr,dev\n  memctl token --sub ann --scope '*' --ttl 7d --jwt-secret-file secret.txt\n\n\
        `--scope` names the domains of the token; `*` is every domain, and records without one."
)]
pub(crate) struct TokenArgs {
    /// User id: the token opens this user's memories and sessions
    #[arg(long, value_name = "ID")]
    sub: UserId,
    /// Role in the token; with `agent`, corrections wait for a person's approval
    #[arg(long, value_name = "ROLE", default_value = "authenticated")]
    role: String,
    /// Lifetime: `90s`, `15m`, `12h` or `7d`, at most a year
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    ttl: TimeDelta,
    /// Audience: the value of the server's `--audience`
    #[arg(long, value_name = "NAME", default_value = AUDIENCE)]
    audience: String,
    /// File with the secret, of 32 bytes or more
    #[arg(long, value_name = "FILE")]
    jwt_secret_file: Option<PathBuf>,
}

/// Parses a whole number of seconds, minutes, hours or days, up to a year.
fn span(text: &str) -> Result<TimeDelta, String> {
    let unit = text.chars().next_back().unwrap_or_default();
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => 0,
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    let number: i64 = number.parse().unwrap_or_default();
    let seconds = number.saturating_mul(seconds);
    if !(1..=366 * 86_400).contains(&seconds) {
        return Err("expected a time such as 90s, 15m, 12h or 7d, at most a year".to_owned());
    }
    Ok(TimeDelta::seconds(seconds))
}

pub(crate) fn token(context: &Context, args: &TokenArgs) -> Done {
    let Some(given) = &context.given_scope else {
        return Err(UserError::usage(
            "`--scope` is required",
            format!("memctl token --sub {} --scope hr,dev", args.sub),
        ));
    };
    let domains = given.split(',').map(str::trim);
    let new = NewToken {
        sub: args.sub.clone(),
        domains: domains
            .filter(|domain| !domain.is_empty())
            .map(str::to_owned)
            .collect(),
        role: args.role.clone(),
        audience: args.audience.clone(),
        ttl: args.ttl,
    };
    let secret = secret(context, args.jwt_secret_file.as_deref())?;
    let minted = mint(&new, &secret, context.environment.now);
    let minted = minted.map_err(|reason| {
        let hint = format!("memctl token --sub {} --scope hr,dev", args.sub);
        UserError::input(reason, hint)
    })?;
    Ok(Box::new(minted))
}

/// Returns the secret in the given file, or the secret of this workspace.
pub(crate) fn secret(context: &Context, file: Option<&Path>) -> Result<Secret, UserError> {
    let hint = "openssl rand -hex 32 > secret.txt";
    let refused = |error| UserError::from(error).with_hint(hint);
    if let Some(file) = file {
        return Secret::read(&context.environment.absolute(file)).map_err(refused);
    }
    let Some(state) = &context.environment.state_dir else {
        let message = "cannot store the secret: no home directory found";
        return Err(UserError::usage(message, "--jwt-secret-file FILE"));
    };
    let file = default_file(state, &context.places.memory);
    let secret = Secret::read_or_make(&file, random);
    secret.map_err(|error| UserError::from(error).with_hint(format!("rm {}", file.display())))
}

impl Report for Minted {
    /// Prints only the token, so that it can be assigned to a variable.
    fn page(&self, page: &mut Page) {
        page.line(&self.token);
    }

    /// The token is the requested output.
    fn reveals(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_a_number_and_a_unit() {
        let check = |text: &str, expected: Option<i64>| {
            let read = span(text).ok().map(|span| span.num_seconds());
            assert_eq!(read, expected, "{text}");
        };
        check("90s", Some(90));
        check("15m", Some(900));
        check("1h", Some(3_600));
        check("7d", Some(604_800));
        for bad in [
            "", "h", "0h", "-1h", "1", "1w", "1.5h", "400d", "99999999999999d", "1é",
        ] {
            check(bad, None);
        }
    }
}
