//! Origin: name of this workspace in the shared store.
//!
//! The name is created once. A copied directory, or a clone with the identity in version control,
//! has the same name as the original. The first copy that pushes keeps it, and every other copy
//! uses its replica name. Otherwise each copy would remove the records that only the other one has.

use crate::store::Scoped;

use super::super::connection::Connection;
use super::super::error::Error;

pub(super) struct Claimed {
    pub(super) origin: String,
    pub(super) warning: Option<String>,
}

/// Claims the name of the workspace, or returns the replica name if another copy holds it.
pub(super) async fn claim(
    connection: &Connection,
    store: &Scoped,
    dry_run: bool,
    random: &mut dyn FnMut() -> String,
) -> Result<Claimed, Error> {
    let (origin, replica) = if dry_run {
        let identity = store.identity().map(|identity| identity.origin);
        (
            identity.unwrap_or_default(),
            store.replica().unwrap_or_default(),
        )
    } else {
        let (identity, replica) = store.name_itself(random)?;
        (identity.origin, replica)
    };
    let failed = connection.failed("the name of the workspace cannot be claimed");
    if !dry_run {
        let claim =
            "insert into memctl.origins (origin, replica) values ($1, $2) on conflict do nothing";
        let client = &connection.client;
        client
            .execute(claim, &[&origin, &replica])
            .await
            .map_err(&failed)?;
    }
    let holder = connection
        .client
        .query_opt(
            "select replica from memctl.origins
             where user_id = (select memctl.current_user_id()) and origin = $1",
            &[&origin],
        )
        .await
        .map_err(&failed)?;
    let is_ours = holder.is_none_or(|row| row.get::<_, &str>(0) == replica);
    Ok(if is_ours {
        Claimed {
            origin,
            warning: None,
        }
    } else {
        let warning = format!(
            "another copy of this workspace shares as `{origin}`; this one shares as `{replica}`, \
             and what both have is there twice"
        );
        Claimed {
            origin: replica,
            warning: Some(warning),
        }
    })
}
