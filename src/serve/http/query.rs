//! Query of `PostgREST` over rows: columns (`select`), filters (`eq`, `neq`, `gt`, `gte`, `lt`, `lte`, `is`,
//! `in`), `order`, `limit` and `offset`, and by headers one row (`.single()`) or the inserted ones.
//!
//! Invariant: anything else is an error, because an ignored filter would return too much.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use memctl_files::json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::moment;

use super::input::{Answer, pairs, reply};
use super::problem::Problem;

/// Maximum number of rows in an answer.
const MOST: usize = 1_000;

/// Row of a table, as JSON text: a cell is answered as it was stored, also one that no reader takes.
pub(super) struct Row(String);

impl Row {
    /// Returns the value of a column; that of an unreadable cell is its text.
    pub(super) fn cell(&self, column: &str) -> Value {
        let cell = json::field(self.0.as_bytes(), column).unwrap_or(b"null");
        let value = serde_json::from_slice(cell);
        let value = value.unwrap_or_else(|_| String::from_utf8_lossy(cell).into());
        match value {
            Value::String(text) if is_time(column) => time(&text).unwrap_or(text).into(),
            value => value,
        }
    }

    /// Returns its text with these columns alone.
    fn with(&self, columns: &[String]) -> String {
        let fields = json::fields(self.0.as_bytes());
        let named = fields.filter(|(name, _)| columns.iter().any(|column| column == name));
        let cells = named.map(|(name, cell)| format!("{}:{}", Value::from(name), &self.0[cell]));
        format!("{{{}}}", cells.collect::<Vec<_>>().join(","))
    }
}

/// Conditions of a request on rows.
#[derive(Default)]
pub(super) struct Query {
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

impl Sorted {
    fn order(&self, one: &Value, other: &Value) -> Ordering {
        // As in SQL, null is the largest.
        let nulls = one.is_null().cmp(&other.is_null());
        let order = nulls.then(compare(one, other));
        if self.largest_first {
            order.reverse()
        } else {
            order
        }
    }
}

/// Condition on a column.
#[derive(Debug, PartialEq)]
enum Filter {
    /// Null, or this truth value.
    Is(Option<bool>),
    /// Compared with one of the values, it is one of these.
    Compared(&'static [Ordering], Vec<String>),
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
            list(value)?
        } else {
            vec![value.to_owned()]
        };
        Some(Self::Compared(orders, values))
    }

    /// Brings the values for a column of times to the form of its cells; `None` if one does not parse.
    fn of_times(self) -> Option<Self> {
        match self {
            Self::Compared(orders, values) => {
                let values: Option<Vec<String>> = values.iter().map(|value| time(value)).collect();
                Some(Self::Compared(orders, values?))
            }
            is @ Self::Is(_) => Some(is),
        }
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

/// Splits `(one,"two, three")` into its values. In quotes, `\` stands before a quote or itself.
fn list(text: &str) -> Option<Vec<String>> {
    let mut rest = text.strip_prefix('(')?.strip_suffix(')')?.trim();
    let mut values = Vec::new();
    while !rest.is_empty() {
        let mut value = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut chars = quoted.chars();
            loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => value.push(chars.next()?),
                    other => value.push(other),
                }
            }
            rest = chars.as_str().trim_start();
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            rest[..end].trim_end().clone_into(&mut value);
            rest = &rest[end..];
        }
        values.push(value);
        if !rest.is_empty() {
            rest = rest.strip_prefix(',')?.trim_start();
        }
    }
    Some(values)
}

/// Returns `true` for the columns of the tables that hold times.
fn is_time(column: &str) -> bool {
    column.ends_with("_at") || column.ends_with("_dt")
}

/// Returns a time in a form whose order is that of the times; `None` if it is none.
fn time(text: &str) -> Option<String> {
    let time = moment(text.trim())?;
    Some(time.format("%Y-%m-%dT%H:%M:%S%.9f").to_string())
}

/// Compares numbers as numbers and everything else as text.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.cmp(other),
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
        if says(&parts.headers, "prefer", "resolution=") {
            return Err(Problem::input(
                "a row that exists is not replaced here",
                "insert without `upsert`",
            ));
        }
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
                        if !matches!(words, "asc" | "desc") {
                            return Err(not_a("order", part, "`COLUMN.asc` or `COLUMN.desc`"));
                        }
                        query.order.push(Sorted {
                            column: column.to_owned(),
                            largest_first: words == "desc",
                        });
                    }
                }
                "limit" => query.limit = Some(count()?),
                "offset" => query.offset = count()?,
                _ => {
                    let filter = Filter::parse(&value)
                        .ok_or_else(|| not_a(&name, &value, "a filter such as `eq.VALUE`"))?;
                    let filter = if is_time(&name) {
                        let filter = filter.of_times();
                        filter.ok_or_else(|| not_a(&name, &value, "a filter with a time"))?
                    } else {
                        filter
                    };
                    query.filters.push((name, filter));
                }
            }
        }
        Ok(query)
    }

    /// Returns the one value that a column may have.
    pub(super) fn equal(&self, column: &str) -> Option<&str> {
        self.filters.iter().find_map(|(name, filter)| match filter {
            Filter::Compared([Equal], values) if name == column => match values.as_slice() {
                [only] => Some(only.as_str()),
                _ => None,
            },
            _ => None,
        })
    }

    /// Returns the requested rows, with all their columns.
    pub(super) fn choose<T: Serialize + JsonSchema>(
        &self,
        rows: &[T],
    ) -> Result<Vec<Row>, Problem> {
        let schema = schemars::schema_for!(T);
        let known = schema.get("properties").and_then(Value::as_object);
        let used = self.filters.iter().map(|(name, _)| name);
        let used = used.chain(self.order.iter().map(|by| &by.column));
        let mut used = used.chain(self.columns.iter().flatten());
        if let Some(column) = used.find(|name| known.is_none_or(|known| !known.contains_key(*name)))
        {
            return Err(Problem::input(
                format!("unknown column `{}`", column.escape_debug()),
                "name columns of the answer",
            ));
        }
        let mut chosen = Vec::new();
        for row in rows {
            let row = Row(serde_json::to_string(row)?);
            let mut filters = self.filters.iter();
            if filters.all(|(name, filter)| filter.holds(&row.cell(name))) {
                let keys = self.order.iter().map(|by| row.cell(&by.column));
                chosen.push((keys.collect::<Vec<Value>>(), row));
            }
        }
        chosen.sort_by(|(one, _), (other, _)| {
            let pairs = self.order.iter().zip(one.iter().zip(other));
            let orders = pairs.map(|(by, (one, other))| by.order(one, other));
            orders.fold(Equal, Ordering::then)
        });
        let rest = chosen.into_iter().map(|(_, row)| row).skip(self.offset);
        Ok(rest.take(self.limit.unwrap_or(MOST).min(MOST)).collect())
    }

    /// Answers with the requested columns of chosen rows.
    pub(super) fn answer(&self, rows: Vec<Row>) -> Answer {
        let texts = rows.into_iter().map(|row| match &self.columns {
            Some(columns) => row.with(columns),
            None => row.0,
        });
        let rows = texts.map(RawValue::from_string);
        let rows: Vec<Box<RawValue>> = rows.collect::<Result<_, _>>()?;
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
    pub(super) fn reply<T: Serialize + JsonSchema>(&self, rows: &[T]) -> Answer {
        self.answer(self.choose(rows)?)
    }

    /// Answers for inserted rows: with the rows, if the client wants them.
    pub(super) fn inserted<T: Serialize + JsonSchema>(&self, rows: &[T]) -> Answer {
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
    use super::*;

    fn query(given: &[(&str, &str)]) -> Result<Query, Problem> {
        let given = given.iter();
        Query::parse(given.map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
    }

    #[derive(Serialize, JsonSchema)]
    struct Listed {
        id: &'static str,
        #[serde(serialize_with = "number")]
        n: &'static str,
        created_at: &'static str,
        end: Option<&'static str>,
        ok: bool,
    }

    fn number<S: serde::Serializer>(text: &&str, to: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string((*text).to_owned())
            .unwrap()
            .serialize(to)
    }

    #[test]
    fn rows_are_those_that_postgrest_would_return() {
        let row = |id, n, created_at, end, ok| Listed {
            id,
            n,
            created_at,
            end,
            ok,
        };
        let rows = [
            row("a", "9", "2026-01-01T00:00:00+00:00", None, true),
            row("b", "10", "2026-01-01T01:30:00+02:00", Some("x"), false),
            row("c,d", "10", "2026-03-01T00:00:00+00:00", Some("y"), true),
        ];
        let check = |given: &[(&str, &str)], expected: &[&str]| {
            let found = query(given).unwrap().choose(&rows).unwrap();
            let ids: Vec<String> = found
                .iter()
                .map(|row| row.cell("id").as_str().unwrap().to_owned())
                .collect();
            assert_eq!(ids, expected, "{given:?}");
        };
        check(&[], &["a", "b", "c,d"]);
        check(&[("select", "*"), ("id", "eq.a")], &["a"]);
        check(&[("id", "neq.a")], &["b", "c,d"]);
        check(&[("n", "gt.9")], &["b", "c,d"]);
        check(&[("n", "gte.9"), ("n", "lt.10")], &["a"]);
        check(&[("n", "lte.x")], &[]);
        for first in [
            "2026-01-01T00:00:00Z", "2026-01-01 00:00:00+00", "2026-01-01",
        ] {
            check(&[("created_at", format!("lt.{first}").as_str())], &["b"]);
        }
        check(&[("end", "is.null")], &["a"]);
        check(&[("end", "neq.x")], &["c,d"]);
        check(&[("ok", "is.true"), ("ok", "eq.true")], &["a", "c,d"]);
        check(&[("id", "in.(a,\"b\")")], &["a", "b"]);
        check(&[("id", "in.(\"c,d\")")], &["c,d"]);
        check(&[("id", r#"in.("c\,d",d)"#)], &["c,d"]);
        check(&[("id", "in.()")], &[]);
        check(&[("order", "n.desc,created_at.asc")], &["b", "c,d", "a"]);
        check(&[("order", "end.asc")], &["b", "c,d", "a"]);
        check(&[("order", "end.desc")], &["a", "c,d", "b"]);
        check(
            &[
                ("order", "created_at.desc"),
                ("limit", "1"),
                ("offset", "1"),
            ],
            &["a"],
        );
        check(&[("limit", "0")], &[]);
    }

    #[test]
    fn a_cell_that_no_reader_takes_is_in_nobodys_way() {
        let row = |id, n| Listed {
            id,
            n,
            created_at: "",
            end: None,
            ok: true,
        };
        let rows = [row("a", "1e400"), row("b", "12345678901234567890123")];
        let found = query(&[("id", "eq.b")]).unwrap().choose(&rows).unwrap();
        assert_eq!(found.len(), 1);
        let columns = ["n".to_owned()];
        assert_eq!(found[0].with(&columns), r#"{"n":12345678901234567890123}"#);
        let all = query(&[("order", "n")]).unwrap().choose(&rows).unwrap();
        assert!(all.iter().any(|row| row.0.contains("1e400")));
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
            ("id", "in.(\"a)"),
            ("id", "in.(\"a\"b)"),
            ("created_at", "lt.yesterday"),
            ("order", "id.desc.asc"),
            ("order", "id.desc.nullslast"),
        ] {
            assert!(query(&[(name, value)]).is_err(), "{name}={value}");
        }
        let rows: [Listed; 0] = [];
        for given in [
            ("secret", "eq.1"),
            ("order", "secret"),
            ("select", "id,secret"),
        ] {
            assert!(query(&[given]).unwrap().choose(&rows).is_err(), "{given:?}");
        }
    }
}
