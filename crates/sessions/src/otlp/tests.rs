use serde_json::json;

use super::super::Format;
use super::super::tests::read_all;
use super::*;

/// Line with one span.
fn span(
    id: &str,
    start: u64,
    name: &str,
    attributes: &[(&str, Value)],
    failed: Option<&str>,
) -> String {
    let attributes: Vec<Value> = attributes
        .iter()
        .map(|(key, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            json!({"key": key, "value": {"stringValue": text}})
        })
        .collect();
    let status = failed.map_or(json!({}), |message| json!({"code": 2, "message": message}));
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": id, "name": name,
        "startTimeUnixNano": (1_700_000_000_000_000_000 + start).to_string(),
        "attributes": attributes, "status": status,
    }]}]}]})
    .to_string()
}

fn tool(id: &str, start: u64, arguments: &Value, result: &str, failed: Option<&str>) -> String {
    let attributes = [
        ("gen_ai.operation.name", json!("execute_tool")),
        ("gen_ai.tool.name", json!("shell")),
        ("gen_ai.tool.call.id", json!(id)),
        ("gen_ai.tool.call.arguments", arguments.clone()),
        ("gen_ai.tool.call.result", json!(result)),
        ("gen_ai.conversation.id", json!("conv-1")),
    ];
    span(id, start, "execute_tool shell", &attributes, failed)
}

#[test]
fn spans_of_tools_are_steps_in_the_order_of_their_beginning() {
    let lines = [
        tool("c2", 20, &json!({"command": "python3 x.py"}), "ok", None),
        "not JSON".to_owned(),
        tool(
            "c1",
            10,
            &json!({"command": "python x.py"}),
            "",
            Some("python: command not found"),
        ),
    ];
    let read = read_all(None, lines.join("\n"));
    assert_eq!(read.format, Some(Format::Otlp));
    assert_eq!(read.id, "conv-1");
    let steps: Vec<_> = read
        .steps
        .iter()
        .map(|step| (step.command().unwrap(), step.is_error, step.output.as_str()))
        .collect();
    assert_eq!(
        steps,
        [
            (
                "python x.py".to_owned(),
                Some(true),
                "python: command not found"
            ),
            ("python3 x.py".to_owned(), Some(false), "ok"),
        ]
    );
    assert_eq!(read.broken.len(), 1);
    assert_eq!(
        read.steps[0].time.as_deref(),
        Some("2023-11-14T22:13:20.000000Z")
    );
}

#[test]
fn where_tools_have_no_spans_the_messages_tell() {
    let user = json!({"role": "user", "parts": [{"type": "text", "content": "run it"}]});
    let call = json!({"role": "assistant", "parts": [
        {"type": "tool_call", "id": "a", "name": "shell", "arguments": {"command": "python x.py"}}]});
    let answer = json!({"role": "tool", "parts": [
        {"type": "tool_call_response", "id": "a", "response": [{"type": "text", "content": "not found"}]}]});
    let end = json!({"role": "assistant", "parts": [{"type": "text", "content": "done"}]});
    let chat = |id: &str, start, input: Value, output: Value| {
        let attributes = [
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.input.messages", input),
            ("gen_ai.output.messages", output),
        ];
        span(id, start, "chat m", &attributes, None)
    };
    let lines = [
        chat("1", 1, json!([user]), json!([call])),
        chat("2", 2, json!([user, call, answer]), json!([end])),
    ];
    let read = read_all(None, lines.join("\n"));
    assert_eq!(read.steps.len(), 1);
    let step = &read.steps[0];
    assert_eq!(
        (step.output.as_str(), step.answered, step.is_error),
        ("not found", true, None)
    );
    let remarks: Vec<&str> = read
        .remarks
        .iter()
        .map(|remark| remark.text.as_str())
        .collect();
    assert_eq!(remarks, ["run it", "done"]);
    // A call with its own span is emitted once.
    let with_span = [
        &lines[..],
        &[tool(
            "a",
            1,
            &json!({"command": "python x.py"}),
            "not found",
            None,
        )],
    ]
    .concat();
    assert_eq!(read_all(None, with_span.join("\n")).steps.len(), 1);
}

#[test]
fn a_document_over_several_lines_is_read_too() {
    let line = tool("c1", 10, &json!("ls"), "x", None);
    let value: Value = serde_json::from_str(&line).unwrap();
    for text in [
        serde_json::to_string_pretty(&value).unwrap(),
        serde_json::to_string_pretty(&json!([value])).unwrap(),
    ] {
        let read = read_all(None, &text);
        assert_eq!(
            (read.format, read.steps.len()),
            (Some(Format::Otlp), 1),
            "{text}"
        );
        assert_eq!(read.steps[0].command().as_deref(), Some("ls"));
        assert_eq!(
            read_all(Some(Format::Otlp), &text[..text.len() - 9])
                .broken
                .len(),
            1
        );
    }
}
