//! `remote check` finds what is wrong: each thing that would let one user see another is done to a
//! sound database, found, and taken back.

use super::{ANN, Client, Store};

#[test]
fn every_sabotage_of_the_isolation_is_found() {
    let Some(store) = Store::new() else { return };
    let admin = store.database.admin();
    let number = store.database.number;
    let added = {
        let (name, url) = (format!("zoe_{number}"), &store.database.url);
        store
            .workspace
            .json(&["remote", "user", "add", &name, "--url", url])
    };
    let url = added["url"].as_str().unwrap();
    let zoe = format!("memctl_zoe_{number}");
    assert_eq!(store.check(url).0, 0);
    let match_memory = "match_memory(vector, float, int, text, uuid)";
    for (done, undone, check, said) in [
        (
            "alter table agent_memory no force row level security".to_owned(),
            "alter table agent_memory force row level security".to_owned(),
            "row security",
            "`public.agent_memory` has it on, but not forced",
        ),
        (
            "alter table reflexions disable row level security".into(),
            "alter table reflexions enable row level security".into(),
            "row security",
            "`public.reflexions` has it off",
        ),
        (
            "alter table memctl.logins disable row level security".into(),
            "alter table memctl.logins enable row level security".into(),
            "row security",
            "`memctl.logins` has it off",
        ),
        (
            "create policy oops on executions using (true)".into(),
            "drop policy oops on executions".into(),
            "probe",
            "another user sees 1 rows of `executions`",
        ),
        (
            "create policy oops on agent_memory for insert with check (true)".into(),
            "drop policy oops on agent_memory".into(),
            "forged owner",
            "`agent_memory` takes rows in another's name",
        ),
        (
            "drop policy \"users read their own\" on corrections".into(),
            "create policy \"users read their own\" on corrections for select using (user_id = (select memctl.current_user_id()))".into(),
            "probe",
            "a row of `corrections` is not seen by its own user",
        ),
        (
            format!("alter role {zoe} bypassrls"),
            format!("alter role {zoe} nobypassrls"),
            "role",
            "bypasses row security",
        ),
        (
            format!("alter role {zoe} superuser"),
            format!("alter role {zoe} nosuperuser"),
            "role",
            "is a superuser",
        ),
        (
            format!("create role bypass_{number} bypassrls; grant bypass_{number} to {zoe}"),
            format!("drop role bypass_{number}"),
            "role",
            "bypasses row security",
        ),
        (
            format!("create role owner_{number}; alter table reflexions owner to owner_{number}; grant owner_{number} to {zoe}"),
            format!("alter table reflexions owner to postgres; drop role owner_{number}"),
            "owner",
            "the owner of `public.reflexions`",
        ),
        (
            format!("alter function {match_memory} security definer"),
            format!("alter function {match_memory} security invoker"),
            "functions",
            "runs with the rights of the wrong role",
        ),
        (
            format!("alter function {match_memory} reset search_path"),
            format!("alter function {match_memory} set search_path = pg_catalog, pg_temp"),
            "functions",
            "no pinned search path",
        ),
        (
            "grant execute on function cleanup_expired_memory() to public".into(),
            "revoke execute on function cleanup_expired_memory() from public".into(),
            "functions",
            "everybody may call `public.cleanup_expired_memory()`",
        ),
        (
            "alter function memctl.current_user_id() owner to postgres".into(),
            "alter function memctl.current_user_id() owner to memctl_definer".into(),
            "functions",
            "may do more than it needs",
        ),
        (
            "create function match_memory(text) returns int language sql security definer as 'select 1'".into(),
            "drop function match_memory(text)".into(),
            "functions",
            "runs with the rights of the wrong role",
        ),
        (
            "create function memctl.peek() returns int language sql security definer as 'select 1'".into(),
            "drop function memctl.peek()".into(),
            "functions",
            "`memctl.peek()` is not ours",
        ),
        (
            format!("delete from memctl.logins where role_name = '{zoe}'"),
            format!("insert into memctl.logins values ('{zoe}', '{ANN}')"),
            "identity",
            "is no user",
        ),
        (
            format!("delete from memctl.logins where role_name = '{zoe}'; insert into memctl.token_roles values ('{zoe}');
                     alter role {zoe} set request.jwt.claims = '{{\"sub\":\"{ANN}\"}}'"),
            format!("insert into memctl.logins values ('{zoe}', '{ANN}'); delete from memctl.token_roles; alter role {zoe} reset all"),
            "forged claims",
            "a claim that anybody can write",
        ),
    ] {
        admin.run(&done);
        let (code, report) = store.check(url);
        assert!(report["checks"].is_array(), "{done}: {report}");
        let found = report["checks"].as_array().unwrap().iter().find(|c| c["name"] == check);
        let found = found.unwrap_or_else(|| panic!("{done}: {report}"));
        assert_eq!((code, &found["ok"]), (1, &false.into()), "{done}: {report}");
        assert!(found["detail"].as_str().unwrap().contains(said), "{done}: {found}");
        admin.run(&undone);
        let (code, report) = store.check(url);
        assert_eq!(code, 0, "{undone}: {report}");
    }
    // The page says so, too, and the password of nobody.
    let ran = store
        .workspace
        .run(&["remote", "check", "--url", &store.database.url]);
    assert!(ran.stdout.contains("failed role"), "{ran:?}");
    assert_eq!(ran.code, 1);
    assert_eq!(
        Client::connect(url).value("select count(*) from executions"),
        "0"
    );
}
