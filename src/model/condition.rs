//! Conditions on the metadata of a record: `tone=friendly`, `metrics.views>=1000`.
//!
//! A field is a path of names separated by dots. A field name that contains dots matches before the
//! same text read as a path. `=` on a list matches if the list contains the value. Two numbers
//! compare as numbers, two times as times, everything else as text. A missing field satisfies only
//! `!=`.

use std::cmp::Ordering;
use std::str::FromStr;

use serde_json::Value;

use super::memory::moment;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Path of the field, without the optional prefix `metadata.`.
    pub field: String,
    relation: Relation,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Two-character operators come first, so that `<=` is not read as `<`.
const SIGNS: [(&str, Relation); 6] = [
    ("!=", Relation::IsNot),
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("=", Relation::Is),
    ("<", Relation::Below),
    (">", Relation::Above),
];

/// Text that is not a valid condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a condition is FIELD=VALUE, as in `tone=friendly` or `metrics.views>=1000`; signs: = != < <= > >="
)]
pub struct InvalidCondition;

impl FromStr for Condition {
    type Err = InvalidCondition;

    fn from_str(text: &str) -> Result<Self, InvalidCondition> {
        let at = text.find(['=', '<', '>', '!']).ok_or(InvalidCondition)?;
        let (field, rest) = text.split_at(at);
        let mut signs = SIGNS.into_iter();
        let (sign, relation) = signs
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or(InvalidCondition)?;
        let field = field.trim();
        let field = field.strip_prefix("metadata.").unwrap_or(field);
        if field.is_empty() {
            return Err(InvalidCondition);
        }
        Ok(Self {
            field: field.to_owned(),
            relation,
            value: rest[sign.len()..].trim().to_owned(),
        })
    }
}

impl Condition {
    /// Returns `true` if the metadata satisfies the condition.
    pub fn holds(&self, metadata: &Value) -> bool {
        let found = at(metadata, &self.field);
        match self.relation {
            Relation::Is => found.is_some_and(|found| self.is(found)),
            Relation::IsNot => !found.is_some_and(|found| self.is(found)),
            _ => found.is_some_and(|found| self.compares(found)),
        }
    }

    fn is(&self, found: &Value) -> bool {
        match found {
            Value::Array(items) => items.iter().any(|item| self.is(item)),
            Value::Object(_) => false,
            found => {
                let text = text(found);
                text == self.value || self.order(&text) == Some(Ordering::Equal)
            }
        }
    }

    fn compares(&self, found: &Value) -> bool {
        let order = match found {
            Value::Number(_) | Value::String(_) => self.order(&text(found)),
            _ => None,
        };
        order.is_some_and(|order| match self.relation {
            Relation::Below => order.is_lt(),
            Relation::AtMost => order.is_le(),
            Relation::Above => order.is_gt(),
            Relation::AtLeast => order.is_ge(),
            Relation::Is | Relation::IsNot => false,
        })
    }

    /// Compares a text with the condition's value: as numbers, as times or as text.
    fn order(&self, found: &str) -> Option<Ordering> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
        if let (Some(a), Some(b)) = (number(found), number(&self.value)) {
            return a.partial_cmp(&b);
        }
        if let (Some(a), Some(b)) = (moment(found), moment(&self.value)) {
            return Some(a.cmp(&b));
        }
        Some(found.cmp(&self.value))
    }
}

/// Returns the value at a path.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let object = value.as_object()?;
    if let Some(found) = object.get(path) {
        return Some(found);
    }
    let mut points = path.match_indices('.').map(|(at, _)| at);
    points.find_map(|point| at(object.get(&path[..point])?, &path[point + 1..]))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_holds_or_not() {
        let metadata = json!({
            "tone": ["calm", "warm"], "brand_name": "TechFlow = x", "metrics": {"views": 50000, "ctr": 0.02},
            "a.b": {"c": "point"}, "date_captured": "2026-01-31T10:00:00Z", "active": true, "none": null,
            "score": "0.50", "version": "1.10"
        });
        let check = |condition: &str, expected: bool| {
            let parsed: Condition = condition.parse().unwrap();
            assert_eq!(parsed.holds(&metadata), expected, "{condition}");
        };
        for condition in [
            "tone=calm",
            "tone = warm",
            "tone!=loud",
            "brand_name=TechFlow = x",
            "metrics.views>=50000",
            "metrics.views=5e4",
            "metrics.ctr<0.1",
            "metadata.metrics.ctr>0.01",
            "a.b.c=point",
            "date_captured>=2026-01-31",
            "date_captured<2026-02-01",
            "active=true",
            "none=null",
            "missing!=x",
            "score=0.5",
            "version<=2",
        ] {
            check(condition, true);
        }
        for condition in [
            "tone=cal",
            "tone!=calm",
            "brand_name=techflow",
            "metrics=5",
            "metrics.views<50000",
            "metrics.views>many",
            "missing=x",
            "missing<5",
            "active>0",
            "tone>a",
            "date_captured<2026-01-31",
        ] {
            check(condition, false);
        }
    }

    #[test]
    fn invalid_condition_is_refused() {
        for bad in ["", "tone", "=x", " >= 3", "tone!x", "metadata.=x"] {
            assert_eq!(bad.parse::<Condition>(), Err(InvalidCondition), "{bad}");
        }
    }
}
