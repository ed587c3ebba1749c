//! Things of which one can have only one: whoever demands tabs does not want spaces.

use super::super::claim::Terms;

/// Things that exclude each other, as they are written in rules and as the search stems them.
const ALTERNATIVES: &[&[&str]] = &[
    &[
        "snake_case", "kebab-case", "camelcase", "pascalcase", "camel-case", "pascal-case",
        "snake-case",
    ],
    &["tab", "space"],
    &["singl", "doubl"],
    &["npm", "yarn", "pnpm", "bun"],
    &["uv", "pip", "poetri", "conda", "pipenv"],
    &["json", "yaml", "toml", "xml", "csv"],
    &["ascend", "descend"],
    &["formal", "inform", "casual"],
    &["short", "long"],
    &["brief", "detail", "verbos"],
    &["metric", "imperi"],
    &["celsius", "fahrenheit"],
    &["merg", "rebas", "squash"],
    &["us", "uk", "british", "american"],
    &["singular", "plural"],
    &["uppercas", "lowercas"],
    &["upper", "lower"],
    &["sync", "async"],
    &["synchron", "asynchron"],
    &["privat", "public"],
    &["light", "dark"],
    &["euro", "dollar"],
    &["eur", "usd", "gbp"],
    &["utc", "local"],
    &["first", "last"],
    &["top", "bottom"],
    &["left", "right"],
    &["arrow", "function"],
    &[
        "english", "german", "french", "spanish", "italian", "chines", "japanes", "portugues",
        "dutch",
    ],
    &["markdown", "html", "plain"],
];

/// What each of two demands chooses among things that exclude each other, where each names exactly
/// one of them. The two may be the same.
pub(super) fn choices(
    one: &Terms,
    other: &Terms,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    ALTERNATIVES.iter().filter_map(|family| {
        let chosen = |terms: &Terms| {
            let mut named = family.iter().copied().filter(|word| terms.contains(*word));
            named.next().filter(|_| named.next().is_none())
        };
        Some((chosen(one)?, chosen(other)?))
    })
}
