//! Query of `PostgREST` over rows: columns (`select`), filters (`eq`, `neq`, `gt`, `gte`, `lt`, `lte`, `is`,
//! `in`), `order`, `limit` and `offset`, and by headers one row (`.single()`) or the inserted ones.
//!
//! Invariant: anything else is an error, because an ignored filter would return too much.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use chrono::DateTime;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::input::{Answer, pairs, reply};
use super::super::problem::Problem;

/// Maximum number of rows in an answer.
pub(super) const MOST: usize = 1_000;

/// Row of a table, by its columns.
pub(super) type Row = Map<String, Value>;

/// Conditions of a request on rows.
#[derive(Default)]
pub(in super::super) struct Query {
    columns: Option<Vec<String>>,
    filters: Vec<(String, Filter)>,
    order: Vec<Sorted>,
    limit: Option<usize>,
    offset: usize,
    /// Exactly one row is wanted, as an object.
    is_single: bool,
    /// Inserted rows are wanted in the answer.
    wants_inserted: bool,
}

/// Column to sort by.
struct Sorted {
    column: String,
    largest_first: bool,
}

/// Condition on a column.
#[derive(Debug, PartialEq)]
enum Filter {
    /// Null, or this truth value.
    Is(Option<bool>),
    /// Compared with one of the values, it is one of these.
    Compared(&'static [Ordering], Vec<String>),
}

/// Query parameters, for the description.
#[derive(JsonSchema)]
#[expect(
    dead_code,
    reason = "the names of filters are columns, so the parameters are read by hand"
)]
pub(crate) struct QueryParameters {
    /// Columns, separated by commas; default all.
    select: Option<String>,
    /// Columns to sort by, such as `created_at.desc`.
    order: Option<String>,
    /// Maximum number of rows.
    limit: Option<u32>,
    /// Number of rows to skip.
    offset: Option<u32>,
}

impl Filter {
    /// Parses `eq.value` or `in.(one,two)`.
    fn parse(given: &str) -> Option<Self> {
        let (operator, value) = given.split_once('.')?;
        let orders: &[Ordering] = match operator {
            "eq" | "in" => &[Equal],
            "neq" => &[Less, Greater],
            "gt" => &[Greater],
            "gte" => &[Greater, Equal],
            "lt" => &[Less],
            "lte" => &[Less, Equal],
            "is" if value == "null" => return Some(Self::Is(None)),
            "is" => return value.parse().ok().map(|wanted| Self::Is(Some(wanted))),
            _ => return None,
        };
        let values = if operator == "in" {
            let list = value.strip_prefix('(')?.strip_suffix(')')?.split(',');
            list.map(|one| one.trim().trim_matches('"').to_owned())
                .collect()
        } else {
            vec![value.to_owned()]
        };
        Some(Self::Compared(orders, values))
    }

    /// Returns `true` if a value meets the condition. As in SQL, null meets only `is`.
    fn holds(&self, value: &Value) -> bool {
        let (orders, values) = match self {
            Self::Is(None) => return value.is_null(),
            Self::Is(wanted) => return value.as_bool() == *wanted,
            Self::Compared(..) if value.is_null() => return false,
            Self::Compared(orders, values) => (orders, values),
        };
        values.iter().any(|wanted| {
            let wanted = match value {
                Value::String(_) => Some(Value::from(wanted.as_str())),
                _ => serde_json::from_str(wanted).ok(),
            };
            wanted.is_some_and(|wanted| orders.contains(&compare(value, &wanted)))
        })
    }
}

/// Compares numbers as numbers, times as times and everything else as text; null is the largest.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Null, _) | (_, Value::Null) => one.is_null().cmp(&other.is_null()),
        (Value::String(one), Value::String(other)) => {
            let time = |text: &str| DateTime::parse_from_rfc3339(text).ok();
            match (time(one), time(other)) {
                (Some(one), Some(other)) => one.cmp(&other),
                _ => one.cmp(other),
            }
        }
        _ => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => one.to_string().cmp(&other.to_string()),
        },
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let says = |headers: &HeaderMap, name: &str, what: &str| {
            let mut values = headers.get_all(name).iter();
            values.any(|value| value.to_str().is_ok_and(|text| text.contains(what)))
        };
        Ok(Self {
            is_single: says(&parts.headers, "accept", "vnd.pgrst.object+json"),
            wants_inserted: says(&parts.headers, "prefer", "return=representation"),
            ..Self::parse(pairs(parts))?
        })
    }
}

impl Query {
    fn parse(given: impl Iterator<Item = (String, String)>) -> Result<Self, Problem> {
        let mut query = Self::default();
        for (name, value) in given {
            let count = || {
                let number = value.parse::<usize>();
                number.map_err(|_| not_a(&name, &value, "a whole number, not negative"))
            };
            match name.as_str() {
                "select" if value == "*" => {}
                "select" => {
                    let names = value.split(',').map(|name| name.trim().to_owned());
                    query.columns = Some(names.collect());
                }
                // supabase-js repeats the names of the inserted columns.
                "columns" => {}
                "order" => {
                    for part in value.split(',') {
                        let (column, words) = part.split_once('.').unwrap_or((part, "asc"));
                        let allowed = ["asc", "desc", "nullsfirst", "nullslast"];
                        if !words.split('.').all(|word| allowed.contains(&word)) {
                            return Err(not_a("order", part, "`COLUMN.asc` or `COLUMN.desc`"));
                        }
                        query.order.push(Sorted {
                            column: column.to_owned(),
                            largest_first: words.split('.').any(|word| word == "desc"),
                        });
                    }
                }
                "limit" => query.limit = Some(count()?),
                "offset" => query.offset = count()?,
                _ => {
                    let filter = Filter::parse(&value)
                        .ok_or_else(|| not_a(&name, &value, "a filter such as `eq.VALUE`"))?;
                    query.filters.push((name, filter));
                }
            }
        }
        Ok(query)
    }

    /// Returns the value of an `eq` filter.
    pub(super) fn equal(&self, column: &str) -> Option<&str> {
        self.filters.iter().find_map(|(name, filter)| match filter {
            Filter::Compared([Equal], values) if name == column => values.first().map(|v| &**v),
            _ => None,
        })
    }

    /// Returns `true` if the client names a column.
    pub(super) fn names(&self, column: &str) -> bool {
        self.columns.iter().flatten().any(|name| name == column)
    }

    /// Returns the requested rows, with all their columns.
    pub(super) fn choose<T: Serialize>(&self, rows: &[T]) -> Result<Vec<Row>, Problem> {
        let mut all = Vec::new();
        for row in rows {
            if let Value::Object(row) = serde_json::to_value(row)? {
                all.push(row);
            }
        }
        if let Some(first) = all.first() {
            let used = self.filters.iter().map(|(name, _)| name);
            let used = used.chain(self.order.iter().map(|by| &by.column));
            let mut used = used.chain(self.columns.iter().flatten());
            if let Some(column) = used.find(|column| !first.contains_key(*column)) {
                return Err(Problem::input(
                    format!("unknown column `{}`", column.escape_debug()),
                    "name columns of the answer",
                ));
            }
        }
        all.retain(|row| {
            let mut filters = self.filters.iter();
            filters.all(|(name, filter)| filter.holds(&row[name]))
        });
        all.sort_by(|one, other| {
            let orders = self.order.iter().map(|by| {
                let order = compare(&one[&by.column], &other[&by.column]);
                if by.largest_first {
                    order.reverse()
                } else {
                    order
                }
            });
            orders.fold(Equal, Ordering::then)
        });
        let rest = all.into_iter().skip(self.offset);
        Ok(rest.take(self.limit.unwrap_or(MOST).min(MOST)).collect())
    }

    /// Answers with the requested columns of chosen rows.
    pub(super) fn answer(&self, mut rows: Vec<Row>) -> Answer {
        if let Some(columns) = &self.columns {
            for row in &mut rows {
                row.retain(|name, _| columns.contains(name));
            }
        }
        match rows.as_slice() {
            rows if !self.is_single => reply(&rows),
            [one] => reply(one),
            rows => Err(Problem::new(
                406,
                "input",
                format!("one row was requested, but there are {}", rows.len()),
                "remove `.single()`, or narrow the query to one row",
            )),
        }
    }

    /// Answers with the requested part of rows.
    pub(super) fn reply<T: Serialize>(&self, rows: &[T]) -> Answer {
        self.answer(self.choose(rows)?)
    }

    /// Answers for inserted rows: with the rows, if the client wants them.
    pub(super) fn inserted<T: Serialize>(&self, rows: &[T]) -> Answer {
        if !self.wants_inserted {
            return Ok(StatusCode::CREATED.into_response());
        }
        Ok((StatusCode::CREATED, self.reply(rows)?).into_response())
    }
}

fn not_a(name: &str, given: &str, wanted: &str) -> Problem {
    let (name, given) = (name.escape_debug(), given.escape_debug());
    Problem::input(format!("`{name}` is `{given}`"), format!("give {wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(given: &[(&str, &str)]) -> Result<Query, Problem> {
        let given = given.iter();
        Query::parse(given.map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
    }

    #[test]
    fn rows_are_those_that_postgrest_would_return() {
        let rows = [
            json!({ "id": "a", "n": 9, "at": "2026-01-01T00:00:00+00:00", "end": null, "ok": true }),
            json!({ "id": "b", "n": 10, "at": "2026-01-01T01:30:00+02:00", "end": "x", "ok": false }),
            json!({ "id": "c,d", "n": 10, "at": "2026-03-01T00:00:00+00:00", "end": "y", "ok": true }),
        ];
        let check = |given: &[(&str, &str)], expected: &[&str]| {
            let found = query(given).unwrap().choose(&rows).unwrap();
            let ids: Vec<&str> = found
                .iter()
                .map(|row| row["id"].as_str().unwrap())
                .collect();
            assert_eq!(ids, expected, "{given:?}");
        };
        check(&[], &["a", "b", "c,d"]);
        check(&[("select", "*"), ("id", "eq.a")], &["a"]);
        check(&[("id", "neq.a")], &["b", "c,d"]);
        check(&[("n", "gt.9")], &["b", "c,d"]);
        check(&[("n", "gte.9"), ("n", "lt.10")], &["a"]);
        check(&[("n", "lte.x")], &[]);
        check(&[("at", "lt.2026-01-01T00:00:00Z")], &["b"]);
        check(&[("end", "is.null")], &["a"]);
        check(&[("end", "neq.x")], &["c,d"]);
        check(&[("ok", "is.true"), ("ok", "eq.true")], &["a", "c,d"]);
        check(&[("id", "in.(a,\"b\")")], &["a", "b"]);
        check(&[("order", "n.desc,at.asc")], &["b", "c,d", "a"]);
        check(
            &[("order", "at.desc"), ("limit", "1"), ("offset", "1")],
            &["a"],
        );
        check(&[("limit", "0")], &[]);
    }

    #[test]
    fn unknown_filter_is_refused_and_never_ignored() {
        for (name, value) in [
            ("id", "a"),
            ("id", "like.a*"),
            ("id", "not.eq.a"),
            ("or", "(id.eq.a,id.eq.b)"),
            ("n", "is.maybe"),
            ("limit", "-1"),
            ("limit", "x"),
            ("offset", ""),
            ("order", "id.up"),
            ("id", "in.a,b"),
        ] {
            assert!(query(&[(name, value)]).is_err(), "{name}={value}");
        }
        let rows = [json!({ "id": "a" })];
        for given in [
            ("secret", "eq.1"),
            ("order", "secret"),
            ("select", "id,secret"),
        ] {
            assert!(query(&[given]).unwrap().choose(&rows).is_err(), "{given:?}");
        }
    }
}
