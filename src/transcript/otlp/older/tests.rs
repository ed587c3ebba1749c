//! Shortened output of the programs named in [`super`].

use serde_json::{Value, json};

use super::super::super::tests::read_all;
use super::super::{Span, spans, traced};

const FAILS: &str = "python3 -c \"print({}['x'])\"";
const WORKS: &str = "python3 -c \"print({}.get('x'))\"";
const TRACEBACK: &str = "Traceback (most recent call last):\nKeyError: 'x'";

fn attributes(of: &Value) -> Vec<Value> {
    let pairs = of.as_object().unwrap().iter().map(|(key, value)| {
        let value = match value {
            Value::String(text) => json!({ "stringValue": text }),
            Value::Number(number) => json!({"intValue": number.to_string()}),
            other => json!({"stringValue": other.to_string()}),
        };
        json!({"key": key, "value": value})
    });
    pairs.collect()
}

/// One span per line, with ascending start times: name, attributes, events.
fn trace(all: &[(&str, Value, Value)]) -> String {
    let lines = all.iter().enumerate().map(|(n, (name, of_span, events))| {
        let events = events.as_array().into_iter().flatten();
        let events: Vec<Value> = events
            .map(|event| json!({"name": event[0], "attributes": attributes(&event[1])}))
            .collect();
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
            "traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": format!("{n:016}"), "name": name,
            "startTimeUnixNano": (1_700_000_000_000_000_000 + n).to_string(),
            "attributes": attributes(of_span), "events": events,
        }]}]}]})
        .to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Asserts commands with their output and error flag, and remarks.
#[track_caller]
fn check(trace: &str, steps: &[(&str, &str, Option<bool>)], said: &[&str]) {
    let read = read_all(None, trace);
    let found: Vec<_> = read
        .steps
        .iter()
        .map(|step| {
            (
                step.command().unwrap_or_default(),
                step.output.clone(),
                step.is_error,
            )
        })
        .collect();
    let expected: Vec<_> = steps
        .iter()
        .map(|(command, output, error)| ((*command).to_owned(), (*output).to_owned(), *error))
        .collect();
    assert_eq!(found, expected);
    assert!(
        read.steps.iter().all(|step| step.tool == "shell"),
        "{:?}",
        read.steps
    );
    let texts: Vec<&str> = read
        .remarks
        .iter()
        .map(|remark| remark.text.as_str())
        .collect();
    assert_eq!(texts, said);
}

fn arguments(command: &str) -> Value {
    json!({"command": command}).to_string().into()
}

#[test]
fn one_attribute_a_field_is_a_list_of_messages() {
    let steps = [(FAILS, TRACEBACK, None), (WORKS, "None", None)];
    let said = ["print x", "Done."];
    let call = |prefix: &str, n: usize, command: &str| {
        let (id, name) = (
            format!("{prefix}.tool_calls.0.id"),
            format!("{prefix}.tool_calls.0.name"),
        );
        json!({id: format!("call_{n}"), name: "shell",
            format!("{prefix}.tool_calls.0.arguments"): arguments(command), format!("{prefix}.role"): "assistant"})
    };
    let join = |parts: &[Value]| {
        let parts = parts
            .iter()
            .flat_map(|part| part.as_object().unwrap().clone());
        Value::Object(parts.collect())
    };
    let head = json!({"gen_ai.system": "OpenAI", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "print x"});
    let first = json!({"gen_ai.prompt.2.role": "tool", "gen_ai.prompt.2.tool_call_id": "call_1", "gen_ai.prompt.2.content": TRACEBACK});
    let second = json!({"gen_ai.prompt.4.role": "tool", "gen_ai.prompt.4.tool_call_id": "call_2", "gen_ai.prompt.4.content": "None"});
    let (asked, again) = (
        call("gen_ai.prompt.1", 1, FAILS),
        call("gen_ai.prompt.3", 2, WORKS),
    );
    let done =
        json!({"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Done."});
    let none = || json!([]);
    let openllmetry = trace(&[
        (
            "openai.chat",
            join(&[head.clone(), call("gen_ai.completion.0", 1, FAILS)]),
            none(),
        ),
        (
            "openai.chat",
            join(&[
                head.clone(),
                asked.clone(),
                first.clone(),
                call("gen_ai.completion.0", 2, WORKS),
            ]),
            none(),
        ),
        (
            "openai.chat",
            join(&[head, asked, first, again, second, done]),
            none(),
        ),
    ]);
    check(&openllmetry, &steps, &said);

    // OpenInference has other names and one more level.
    let openinference = openllmetry
        .replace("gen_ai.prompt.", "llm.input_messages.")
        .replace("gen_ai.completion.", "llm.output_messages.");
    let mut renamed = String::new();
    for (n, piece) in openinference.split("_messages.").enumerate() {
        let piece = match (n, piece.split_once('.')) {
            (0, _) | (_, None) => piece.to_owned(),
            (_, Some((number, rest))) => {
                let rest = rest
                    .replace("tool_calls.0.id", "tool_calls.0.tool_call.id")
                    .replace("tool_calls.0.name", "tool_calls.0.tool_call.function.name")
                    .replace(
                        "tool_calls.0.arguments",
                        "tool_calls.0.tool_call.function.arguments",
                    );
                format!("_messages.{number}.message.{rest}")
            }
        };
        renamed.push_str(&piece);
    }
    assert!(
        renamed.contains("llm.input_messages.3.message.tool_calls.0.tool_call.function.arguments")
    );
    check(&renamed, &steps, &said);

    // With tool spans that have no call id, each call is emitted once.
    let tool = |command: &str, output: &str| {
        let of_tool = json!({"openinference.span.kind": "TOOL", "tool.name": "shell", "tool.parameters": "{}",
            "input.value": arguments(command), "output.value": output});
        ("shell", of_tool, none())
    };
    let with_spans = format!(
        "{renamed}\n{}",
        trace(&[tool(FAILS, TRACEBACK), tool(WORKS, "None")])
    );
    let steps = steps.map(|(command, output, _)| (command, output, Some(false)));
    check(&with_spans, &steps, &said);
}

#[test]
fn spans_of_tools_have_names_of_their_own() {
    let check_one = |of_tool: Value, command: &str, output: &str| {
        check(
            &trace(&[("shell.tool", of_tool, json!([]))]),
            &[(command, output, Some(false))],
            &[],
        );
    };
    let traceloop = |input: Value, output: Value| {
        json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "shell",
            "traceloop.entity.input": input.to_string(), "traceloop.entity.output": output.to_string()})
    };
    check_one(
        traceloop(json!({"args": [], "kwargs": {"command": "ls"}}), json!("a")),
        "ls",
        "a",
    );
    check_one(
        traceloop(json!({"args": ["ls"], "kwargs": {}}), json!("a\nb")),
        "ls",
        "a\nb",
    );
    let langchain = json!({"input_str": "{'command': 'ls'}", "tags": [], "metadata": {}, "inputs": {"command": "ls"}, "kwargs": {}});
    let message =
        json!({"lc": 1, "type": "constructor", "kwargs": {"content": "a", "tool_call_id": "c"}});
    check_one(
        traceloop(langchain, json!({"output": message, "kwargs": {}})),
        "ls",
        "a",
    );
    let nameless = json!({"traceloop.span.kind": "tool", "traceloop.entity.input": "not JSON"});
    check_one(nameless, "not JSON", "");
    let openinference = json!({"openinference.span.kind": "TOOL", "tool.name": "shell", "input.value": "ls", "output.value": "a"});
    check_one(openinference, "ls", "a");
    // With both conventions, the current one takes precedence.
    let both = json!({"openinference.span.kind": "TOOL", "gen_ai.tool.name": "shell", "tool.name": "x",
        "gen_ai.tool.call.arguments": arguments("ls"), "input.value": "other", "gen_ai.tool.call.result": "a"});
    check_one(both, "ls", "a");
    // Agents, chains and models are not tools.
    for kind in ["AGENT", "CHAIN", "LLM", "workflow", "task"] {
        let of_span = json!({"openinference.span.kind": kind, "traceloop.span.kind": kind, "input.value": "ls"});
        check(&trace(&[("x", of_span, json!([]))]), &[], &[]);
    }
}

#[test]
fn events_of_a_span_are_messages() {
    // Azure AI Inference: the whole message in one attribute.
    let event = |name: &str, content: Value| json!([name, {"gen_ai.system": "az.ai.inference", "gen_ai.event.content": content.to_string()}]);
    let call = |n: usize, command: &str| {
        json!({"role": "assistant", "tool_calls": [{"id": format!("call_{n}"), "type": "function",
            "function": {"name": "shell", "arguments": arguments(command)}}]})
    };
    let choice = |message: Value| {
        event(
            "gen_ai.choice",
            json!({"finish_reason": "stop", "index": 0, "message": message}),
        )
    };
    let of_span = || json!({"gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.inference"});
    let user = event(
        "gen_ai.user.message",
        json!({"content": "print x", "role": "user"}),
    );
    let answered = event(
        "gen_ai.tool.message",
        json!({"content": TRACEBACK, "id": "call_1"}),
    );
    let azure = trace(&[
        ("chat m", of_span(), json!([user, choice(call(1, FAILS))])),
        (
            "chat m",
            of_span(),
            json!([
                user,
                event("gen_ai.assistant.message", call(1, FAILS)),
                answered,
                choice(json!({"content": "Done."}))
            ]),
        ),
    ]);
    check(&azure, &[(FAILS, TRACEBACK, None)], &["print x", "Done."]);

    // Strands Agents: blocks as in Bedrock; tools have spans.
    let blocks = |blocks: Value| Value::from(blocks.to_string());
    let tried = blocks(
        json!([{"text": "I try."}, {"toolUse": {"toolUseId": "t1", "name": "shell", "input": {"command": FAILS}}}]),
    );
    let result = json!([{"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": TRACEBACK}]}}]);
    let chat = |events: Value| {
        (
            "chat",
            json!({"gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents"}),
            events,
        )
    };
    let asked = json!(["gen_ai.user.message", {"content": blocks(json!([{"text": "print x"}]))}]);
    let told = json!(["gen_ai.user.message", {"content": blocks(result)}]);
    let end = json!(["gen_ai.choice", {"finish_reason": "end_turn", "message": blocks(json!([{"text": "Done."}]))}]);
    let chats = [
        chat(json!([asked, ["gen_ai.choice", {"finish_reason": "tool_use", "message": tried}]])),
        chat(json!([asked, ["gen_ai.assistant.message", {"content": tried}], told, end])),
    ];
    let said = ["print x", "I try.", "Done."];
    check(&trace(&chats), &[(FAILS, TRACEBACK, Some(true))], &said);
    let of_tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.system": "strands-agents",
        "gen_ai.tool.name": "shell", "gen_ai.tool.call.id": "t1", "tool.status": "error"});
    let events = json!([["gen_ai.tool.message", {"role": "tool", "content": arguments(FAILS), "id": "t1"}],
        ["gen_ai.choice", {"message": blocks(json!([{"text": TRACEBACK}])), "id": "t1"}]]);
    let with_tool = trace(&[
        chats[0].clone(),
        ("execute_tool shell", of_tool, events),
        chats[1].clone(),
    ]);
    check(&with_tool, &[(FAILS, TRACEBACK, Some(true))], &said);
}

#[test]
fn an_execution_is_counted_in_older_words_too() {
    let of_run = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "hr/screening",
        "gen_ai.system": "openai", "gen_ai.request.model": "gpt-x", "gen_ai.usage.prompt_tokens": 12,
        "gen_ai.usage.completion_tokens": 3, "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "{\"a\": 1}",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "{\"b\": 2}"});
    let line = trace(&[("invoke_agent hr/screening", of_run, json!([]))]);
    let all: Vec<Span> = spans(&serde_json::from_str(&line).unwrap()).unwrap();
    let run = traced(&all[0]).unwrap();
    assert_eq!(
        (run.model.as_str(), run.input_tokens, run.output_tokens),
        ("openai/gpt-x", Some(12), Some(3))
    );
    assert_eq!(
        (run.input.as_deref(), run.output.as_deref()),
        (Some("{\"a\": 1}"), Some("{\"b\": 2}"))
    );
}

#[test]
fn what_is_none_of_them_is_left_alone() {
    let odd = json!({"gen_ai.prompt.": "x", "gen_ai.prompt.0": "x", "gen_ai.prompt.a.role": "user",
        "gen_ai.prompt.1.tool_calls.x.id": "1", "gen_ai.prompt.99999999999999999999.role": "user",
        "llm.input_messages.0.a.b.c.d.e.f.g.h.i": "deep", "traceloop.span.kind": 7, "openinference.span.kind": ""});
    let events = json!([["gen_ai.user.message", {"content": ""}], ["gen_ai..message", {}], ["gen_ai.choice", {"message": "[]"}],
        ["gen_ai.choice", {"gen_ai.event.content": "[1]"}], ["gen_ai.tool.message", {"content": "[{}]"}], ["", {}]]);
    let read = read_all(None, trace(&[("x", odd, events)]));
    assert_eq!((read.steps.len(), read.broken.len()), (0, 0));
}
