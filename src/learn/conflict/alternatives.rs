//! Families of mutually exclusive choices: tabs exclude spaces.

use super::super::claim::Terms;

/// Families of mutually exclusive words, stemmed as in search.
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

/// For each family, the choice of each demand, if both name exactly one member. The two can be
/// equal.
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
