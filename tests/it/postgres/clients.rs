//! Clients of the source documents on a prepared database: `PostgREST` with the claims of a user, and edge
//! functions with the key of `service_role`.

use super::server::PASSWORD;
use super::{ANN, BEN, Client, Store};

const NEAR: &str = "('[1' || repeat(',0', 1535) || ']')::vector";

/// A session as `PostgREST` opens it: `authenticator` logs in, and becomes the role of the token.
fn session(store: &Store, role: &str, claims: &str) -> Client {
    let admin = store.database.admin();
    let make = |what: &str| {
        admin.run(&format!(
            "do $$ begin create role {what}; exception when duplicate_object or unique_violation then null; end $$"
        ));
    };
    make("anon nologin");
    make("authenticated nologin");
    make("service_role nologin bypassrls");
    make(&format!(
        "authenticator login noinherit password '{PASSWORD}'"
    ));
    admin.run("grant anon, authenticated, service_role to authenticator");
    let client = Client::connect(&store.database.url_of("authenticator"));
    client.run(&format!(
        "set role {role}; set request.jwt.claims = '{claims}'"
    ));
    client
}

/// A database that was prepared when Supabase's roles were there already.
pub(super) fn supabase() -> Option<Store> {
    let first = Store::new()?;
    drop(session(&first, "anon", "{}"));
    Store::new()
}

#[test]
fn edge_function_with_the_service_key_writes_and_finds_for_any_user() {
    let Some(store) = supabase() else { return };
    let backend = session(&store, "service_role", r#"{"role":"service_role"}"#);
    // Insert and search as `agent-memory-write` and `agent-memory-read` do.
    for (user, content) in [(ANN, "the brand is warm"), (BEN, "the brand is cold")] {
        let insert = format!(
            "insert into agent_memory (user_id, content, memory_type, embedding, metadata, expires_at)
             values ('{user}', '{content}', 'brand_memory', {NEAR}, '{{}}', null) returning content"
        );
        assert_eq!(backend.value(&insert), content);
        let find =
            format!("select content from match_memory({NEAR}, 0.1, 5, 'brand_memory', '{user}')");
        assert_eq!(backend.run(&find).concat(), [content]);
    }
    // The users see what was written for them, in the order of their changes, and nothing else.
    assert_eq!(
        store.ann.run("select content from agent_memory").concat(),
        ["the brand is warm"]
    );
    assert_eq!(
        store.ben.run("select content from agent_memory").concat(),
        ["the brand is cold"]
    );
    assert_eq!(store.ann.value("select memctl.clock() >= 1"), "t");
    // The failure analyst's insert, and the hybrid search, which names no user.
    backend.run(&format!(
        "insert into context_eng_memories (user_id, content, metadata, embedding)
         values ('{ANN}', 'verify regulatory requirements', '{{\"status\": \"procedure_learned\"}}', {NEAR})"
    ));
    let hybrid = "select content from hybrid_search_context_eng_memories('regulatory', null, 5)";
    assert_eq!(
        backend.run(hybrid).concat(),
        ["verify regulatory requirements"]
    );
    let both =
        format!("select content from hybrid_search_context_eng_memories('regulatory', {NEAR}, 5)");
    assert_eq!(
        backend.run(&both).concat(),
        ["verify regulatory requirements"]
    );
    assert_eq!(store.ben.run(hybrid).len(), 0);
    assert_eq!(
        backend.changed("update agent_memory set metadata = '{\"seen\": 1}'"),
        Ok(2)
    );
    assert_eq!(backend.changed("delete from agent_memory"), Ok(2));
}

#[test]
fn client_with_a_token_finds_what_sync_has_stored() {
    let Some(store) = supabase() else { return };
    let workspace = store.laptop(ANN);
    workspace.json(&[
        "memory",
        "add",
        "--type",
        "brand_memory",
        "--content",
        "Write as a friend would.",
    ]);
    workspace.json(&["sync", "push"]);
    let ann = session(
        &store,
        "authenticated",
        &format!(r#"{{"sub":"{ANN}","role":"authenticated"}}"#),
    );
    assert_ne!(ann.value("select embedding_model from agent_memory"), "");
    let find = "select content from match_memory((select embedding from agent_memory), 0.7, 5)";
    assert_eq!(ann.run(find).concat(), ["Write as a friend would."]);
    // Another model's vectors are not compared where the client names its model.
    ann.run("set memctl.embedding_model = 'text-embedding-3-small'");
    assert_eq!(ann.run(find).len(), 0);
    let ben = session(&store, "authenticated", &format!(r#"{{"sub":"{BEN}"}}"#));
    assert_eq!(ben.value("select count(*) from memctl.embedders"), "0");
    let models = format!("select memctl.searched_models('{ANN}') = array['']");
    assert_eq!(ben.value(&models), "t");
    // No token, no rows.
    let nobody = session(&store, "anon", r#"{"role":"anon"}"#);
    nobody.refused("42501", "select content from agent_memory");
    nobody.refused("42501", "select memctl.searched_models(null)");
}

#[test]
fn role_that_does_not_bypass_row_security_is_given_nothing() {
    let Some(store) = supabase() else { return };
    let stranger = Client::connect(&store.role("stranger", ""));
    stranger.refused("42501", "select count(*) from agent_memory");
    stranger.refused(
        "42501",
        "select * from memctl.hybrid_search_of_all('x', null, 1, 1, 1, 50)",
    );
    store.ann.refused(
        "42501",
        "select * from memctl.hybrid_search_of_all('x', null, 1, 1, 1, 50)",
    );
}
