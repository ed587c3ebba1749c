//! The plugin of the repository: the manifests of Claude Code, of its marketplace and of Agent Plugins
//! 1.0.0 describe one plugin in the version of this package.

use std::path::Path;

use serde_json::Value;

fn read(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn manifests_name_one_plugin_in_the_version_of_the_package() {
    let marketplace = read(".claude-plugin/marketplace.json");
    let entry = &marketplace["plugins"][0];
    assert_eq!(entry["source"], "./plugin");
    for manifest in [
        entry,
        &read("plugin/.claude-plugin/plugin.json"),
        &read("plugin/plugin.json"),
    ] {
        assert_eq!(manifest["name"], "memctl");
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn agent_plugins_manifest_has_only_fields_of_the_specification() {
    const FIELDS: [&str; 10] = [
        "$schema", "name", "version", "description", "author", "homepage", "repository", "license",
        "keywords", "extensions",
    ];
    let manifest = read("plugin/plugin.json");
    for field in manifest.as_object().unwrap().keys() {
        assert!(FIELDS.contains(&field.as_str()), "{field}");
    }
    assert!(
        manifest["$schema"]
            .as_str()
            .unwrap()
            .contains("/1.0.0/plugin.")
    );
    let servers = read("plugin/mcp.json");
    assert!(servers["$schema"].as_str().unwrap().contains("/1.0.0/mcp."));
    // Both hosts start the same server.
    let server = &servers["mcpServers"]["memctl"];
    let claude = &read("plugin/.mcp.json")["mcpServers"]["memctl"];
    assert_eq!(server["type"], "stdio");
    for field in ["command", "args"] {
        assert_eq!(server[field], claude[field], "{field}");
    }
}
