//! Names of agent hosts on the command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::host::{Host, ServerHost};

/// Parser for an agent host with hooks.
pub(super) fn with_hooks() -> impl TypedValueParser<Value = Host> {
    one_of(Host::ALL.to_vec(), Host::name, Host::title)
}

/// Parser for an agent host with MCP servers.
pub(super) fn with_servers() -> impl TypedValueParser<Value = ServerHost> {
    one_of(
        ServerHost::ALL.to_vec(),
        ServerHost::name,
        ServerHost::title,
    )
}

/// Parser for an agent host of coding agents, which `setup` sets up.
pub(super) fn of_coding_agents() -> impl TypedValueParser<Value = ServerHost> {
    let hosts = ServerHost::of_coding_agents().collect();
    one_of(hosts, ServerHost::name, ServerHost::title)
}

fn one_of<H: Copy + Send + Sync + 'static>(
    hosts: Vec<H>,
    name: fn(H) -> &'static str,
    title: fn(H) -> &'static str,
) -> impl TypedValueParser<Value = H> {
    let values = hosts.iter().copied();
    let values = values.map(|host| PossibleValue::new(name(host)).help(title(host)));
    PossibleValuesParser::new(values).try_map(move |chosen| {
        let mut hosts = hosts.iter().copied();
        let host = hosts.find(|host| name(*host) == chosen);
        host.ok_or_else(|| format!("no agent host `{chosen}`"))
    })
}
