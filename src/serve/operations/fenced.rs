//! Formatting of stored text for a model: trusted records as they are, all others in a fence.
//!
//! Only [`is_data`] decides between the two, by a record's kind and its trust.

use crate::model::{Kind, Trust};
use memctl_redact::fence;

/// Returns `true` if a text has to be shown as data: it is not approved, or it contains input and
/// output of skills and tools.
pub(in crate::serve) fn is_data(kind: Kind, trust: Trust) -> bool {
    trust == Trust::Observed || matches!(kind, Kind::Execution | Kind::Session)
}

/// Formats the items: first the trusted ones, then the others in one fence.
pub(in crate::serve) fn apart<T>(
    items: &[T],
    is_data: impl Fn(&T) -> bool,
    words: impl Fn(&[&T]) -> String,
    nonce: &str,
) -> String {
    let (data, said): (Vec<&T>, Vec<&T>) = items.iter().partition(|item| is_data(item));
    let mut text = words(&said);
    if !data.is_empty() {
        text.push_str(&fence(&[words(&data)], nonce));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_stands_for_is_fenced() {
        let check = |kind, trust, expected| assert_eq!(is_data(kind, trust), expected);
        check(Kind::Reflexion, Trust::User, false);
        check(Kind::Reflexion, Trust::Approved, false);
        check(Kind::Reflexion, Trust::Observed, true);
        check(Kind::Procedure, Trust::Approved, false);
        check(Kind::Execution, Trust::User, true);
        check(Kind::Session, Trust::Approved, true);
        let words = |items: &[&u8]| items.iter().map(|item| item.to_string() + "\n").collect();
        let text = apart(&[1, 2, 3], |item| *item == 2, words, "n0nce");
        assert!(
            text.starts_with("1\n3\n")
                && text.ends_with("<memctl-data-n0nce>\n2\n</memctl-data-n0nce>\n")
        );
        assert_eq!(apart(&[1], |_| false, words, "n0nce"), "1\n");
    }
}
