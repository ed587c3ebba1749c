//! Changes only the white space of JSON text. Numbers, strings and the order of keys stay
//! unchanged.

use super::spans::{skip_space, skip_string};

/// Formats JSON with two spaces per level, `": "`, and one value per line. `level` is the depth of
/// the first bracket.
pub fn pretty(json: &str, mut level: usize) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let new_line = |out: &mut String, level: usize| {
        out.push('\n');
        for _ in 0..level {
            out.push_str("  ");
        }
    };
    let mut at = skip_space(bytes, 0);
    while let Some(&b) = bytes.get(at) {
        let mut end = at + 1;
        match b {
            b'{' | b'[' => {
                let inside = skip_space(bytes, end);
                if matches!(bytes.get(inside), Some(b'}' | b']')) {
                    out.push_str(if b == b'{' { "{}" } else { "[]" });
                    end = inside + 1;
                } else {
                    out.push(char::from(b));
                    level += 1;
                    new_line(&mut out, level);
                }
            }
            b'}' | b']' => {
                level = level.saturating_sub(1);
                new_line(&mut out, level);
                out.push(char::from(b));
            }
            b',' => {
                out.push(',');
                new_line(&mut out, level);
            }
            b':' => out.push_str(": "),
            b'"' => {
                end = skip_string(bytes, at).unwrap_or(bytes.len());
                out.push_str(&json[at..end]);
            }
            _ => {
                end = bytes[at..]
                    .iter()
                    .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
                    .map_or(bytes.len(), |n| at + n.max(1));
                out.push_str(&json[at..end]);
            }
        }
        at = skip_space(bytes, end);
    }
    out
}

/// Formats JSON on one line, without white space outside of strings.
pub fn compact(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let mut at = skip_space(bytes, 0);
    while at < bytes.len() {
        let end = if bytes[at] == b'"' {
            skip_string(bytes, at).unwrap_or(bytes.len())
        } else {
            let rest = bytes[at..].iter();
            rest.skip(1)
                .position(|b| b.is_ascii_whitespace() || *b == b'"')
                .map_or(bytes.len(), |n| at + n + 1)
        };
        out.push_str(&json[at..end]);
        at = skip_space(bytes, end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::layout::*;

    #[test]
    fn pretty_changes_the_layout_only() {
        let json = r#"{"b":[1.0,{"a":"x, {y}"}],"a":{}, "e" : [ ]}"#;
        let expected = "{\n  \"b\": [\n    1.0,\n    {\n      \"a\": \"x, {y}\"\n    }\n  ],\n  \"a\": {},\n  \"e\": []\n}";
        assert_eq!(pretty(json, 0), expected);
        assert_eq!(pretty(expected, 0), expected);
        assert_eq!(pretty("3489.2794929999127", 2), "3489.2794929999127");
        assert_eq!(
            compact(expected),
            json.replace(' ', "").replace("x,{y}", "x, {y}")
        );
        assert_eq!(compact(" 1e+16 \n"), "1e+16");
    }
}
