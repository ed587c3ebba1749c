//! A model server on a real socket, which speaks the Anthropic Messages protocol, `OpenAI`'s chat
//! and embeddings protocols and Ollama's for embeddings, behaves as it is told, and remembers what
//! it was asked.
//!
//! ```ignore
//! let model = FakeModel::queue([Behaviour::status(529), Behaviour::text("hello")]);
//! // … ask `model.anthropic_url()` or `model.openai_url()`, here or from a child process …
//! assert_eq!(model.requests().len(), 2);
//! ```
//!
//! [`FakeModel::answering`] takes a closure where an answer depends on the question. Which protocol
//! is spoken follows from the path of the request; whether an answer is streamed, from its
//! `stream` field, unless the [`Answer`] says otherwise. Streams are written in small pieces, so
//! that events are cut anywhere. A connection serves one request. The server ends when it is
//! dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Received request.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    /// `GET` or `POST`.
    pub(crate) method: String,
    /// `/v1/messages`, `/v1/chat/completions`, …
    pub(crate) path: String,
    /// In order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body; `null` where there was none.
    pub(crate) body: Value,
}

impl RecordedRequest {
    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(n, _)| n == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// Text of the system part, in any protocol.
    pub(crate) fn system(&self) -> &str {
        let system = self.body.pointer("/system/0/text");
        let message = || {
            let is_system = self.body.pointer("/messages/0/role")? == "system";
            self.body
                .pointer("/messages/0/content")
                .filter(|_| is_system)
        };
        system
            .or_else(message)
            .and_then(Value::as_str)
            .unwrap_or("")
    }

    /// Text of the question, in any protocol.
    pub(crate) fn user(&self) -> &str {
        let messages = self.body["messages"].as_array();
        let last = messages.and_then(|messages| messages.last());
        last.and_then(|message| message["content"].as_str())
            .unwrap_or("")
    }

    /// The texts that vectors are asked for.
    pub(crate) fn input(&self) -> Vec<String> {
        serde_json::from_value(self.body["input"].clone()).unwrap_or_default()
    }

    fn is_anthropic(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        path.ends_with("/messages")
    }
}

/// An answer that goes well, up to the model's own limits.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Text of the answer.
    pub(crate) text: String,
    /// Tokens read (120) and written (30); `None` reports no usage at all.
    pub(crate) usage: Option<(u64, u64)>,
    /// Reported as `usage.cost`, as `OpenRouter` does.
    pub(crate) cost: Option<f64>,
    /// In Anthropic's words: `end_turn`, `max_tokens`, `refusal`; translated for the other protocol.
    pub(crate) stop: &'static str,
    /// Answer in one piece even where a stream was asked for.
    pub(crate) plain: bool,
}

/// Behaviour of the server for one request.
#[derive(Debug, Clone)]
pub(crate) enum Behaviour {
    /// Answers.
    Answer(Answer),
    /// Answers with these vectors, the first one last where the protocol has an index for each.
    Vectors(Vec<Vec<f64>>),
    /// Answers with a status, further headers, and a body (JSON, or a verbatim string).
    Status(u16, Vec<(&'static str, String)>, Value),
    /// Answers with status 200 and something that is not JSON.
    InvalidJson,
    /// Begins to answer with this text and cuts the connection.
    TruncatedBody(String),
    /// Streams these events as they are; [`calls`] makes some.
    Stream(Vec<String>),
    /// Waits before it does something else.
    Slow(Duration, Box<Behaviour>),
    /// Reads the request and says nothing.
    Hang,
    /// The account's spending limit is reached: a 429 that must not be retried.
    SpendLimit,
}

impl Behaviour {
    /// Answers with this text, 120 tokens read and 30 written.
    pub(crate) fn text(text: &str) -> Self {
        Self::Answer(Answer {
            text: text.to_owned(),
            usage: Some((120, 30)),
            cost: None,
            stop: "end_turn",
            plain: false,
        })
    }

    /// As [`Behaviour::text`], changed.
    pub(crate) fn answer(text: &str, change: impl FnOnce(&mut Answer)) -> Self {
        let Self::Answer(mut answer) = Self::text(text) else {
            unreachable!("`text` makes an answer");
        };
        change(&mut answer);
        Self::Answer(answer)
    }

    /// An error of this status, in the words of the protocols.
    pub(crate) fn status(status: u16) -> Self {
        Self::error(status, "api_error", "something is wrong")
    }

    /// An error of this status, type and message.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::Status(status, Vec::new(), body)
    }

    /// The same error with a header.
    pub(crate) fn with_header(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Status(status, mut headers, body) => {
                headers.push((name, value.to_owned()));
                Self::Status(status, headers, body)
            }
            other => other,
        }
    }
}

type Decide = dyn Fn(&RecordedRequest) -> Behaviour + Send + Sync;

/// The server.
pub(crate) struct FakeModel {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    stop: Arc<AtomicBool>,
    listener: Option<std::thread::JoinHandle<()>>,
}

impl FakeModel {
    /// Behaves as told, one request after the other; what comes after that is answered with a 418,
    /// which nobody retries.
    pub(crate) fn queue(behaviours: impl IntoIterator<Item = Behaviour>) -> Self {
        let queue = Mutex::new(behaviours.into_iter().collect::<Vec<_>>().into_iter());
        Self::answering(move |_| {
            let next = queue.lock().unwrap().next();
            next.unwrap_or_else(|| Behaviour::error(418, "empty", "nothing more is queued"))
        })
    }

    /// Decides on each request when it comes. Lists of models (`GET …/models`) are answered
    /// without asking: they hold the one model `fake`.
    pub(crate) fn answering(
        decide: impl Fn(&RecordedRequest) -> Behaviour + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let decide: Arc<Decide> = Arc::new(decide);
        let handle = {
            let (requests, stop) = (Arc::clone(&requests), Arc::clone(&stop));
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let (requests, stop) = (Arc::clone(&requests), Arc::clone(&stop));
                    let decide = Arc::clone(&decide);
                    // The client may disconnect at any time, which is not a failure of the server.
                    std::thread::spawn(move || {
                        stream.and_then(|stream| serve(&stream, &*decide, &requests, &stop))
                    });
                }
            })
        };
        Self {
            address,
            requests,
            stop,
            listener: Some(handle),
        }
    }

    /// The base URL for the Anthropic protocol.
    pub(crate) fn anthropic_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for the chat and the embeddings protocol.
    pub(crate) fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Requests received so far.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener, which then sees that it is over.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

fn serve(
    stream: &TcpStream,
    decide: &Decide,
    requests: &Mutex<Vec<RecordedRequest>>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(request) = read(stream)? else {
        return Ok(());
    };
    requests.lock().unwrap().push(request.clone());
    let out = Out { stream, stop };
    if request.method == "GET" {
        let models = json!({"object": "list", "data": [{"id": "fake", "object": "model"}]});
        return out.whole(200, &[], &models);
    }
    out.behave(&request, decide(&request))
}

fn read(stream: &TcpStream) -> std::io::Result<Option<RecordedRequest>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(RecordedRequest {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

/// One connection's way out.
struct Out<'a> {
    stream: &'a TcpStream,
    stop: &'a AtomicBool,
}

impl Out<'_> {
    fn behave(&self, request: &RecordedRequest, behaviour: Behaviour) -> std::io::Result<()> {
        let streamed = request.body["stream"] == true;
        match behaviour {
            Behaviour::Answer(answer) if streamed && !answer.plain => {
                self.begin_stream()?;
                self.events(&stream_of(request, &answer))?;
                self.end_stream()
            }
            Behaviour::Answer(answer) => self.whole(200, &[], &whole_of(request, &answer)),
            Behaviour::Vectors(vectors) => self.whole(200, &[], &vectors_of(request, &vectors)),
            Behaviour::Status(status, headers, body) => self.whole(status, &headers, &body),
            Behaviour::InvalidJson => {
                self.whole(200, &[], &Value::from("<html>all is well</html>"))
            }
            Behaviour::TruncatedBody(text) => {
                let body = whole_of(request, &answer_of(&text)).to_string();
                let (half, _) = body.split_at(body.len() / 2);
                let head = head(
                    200,
                    &[("content-length", body.len().to_string())],
                    "application/json",
                );
                self.write(&format!("{head}{half}"))
            }
            Behaviour::Stream(events) => {
                self.begin_stream()?;
                self.events(&events)?;
                self.end_stream()
            }
            Behaviour::Slow(time, then) => {
                self.wait(time);
                self.behave(request, *then)
            }
            Behaviour::Hang => {
                self.wait(Duration::MAX);
                Ok(())
            }
            Behaviour::SpendLimit => {
                let body = if request.is_anthropic() {
                    json!({"type": "error", "error": {"type": "rate_limit_error",
                        "message": "your spend limit is reached",
                        "details": {"error_code": "enforced_spend_limit_reached"}}})
                } else {
                    json!({"error": {"type": "insufficient_quota", "code": "insufficient_quota",
                        "message": "you exceeded your current quota"}})
                };
                self.whole(429, &[], &body)
            }
        }
    }

    fn whole(&self, status: u16, headers: &[(&str, String)], body: &Value) -> std::io::Result<()> {
        let body = body
            .as_str()
            .map_or_else(|| body.to_string(), str::to_owned);
        let mut headers = headers.to_vec();
        headers.push(("content-length", body.len().to_string()));
        self.write(&format!(
            "{}{body}",
            head(status, &headers, "application/json")
        ))
    }

    fn begin_stream(&self) -> std::io::Result<()> {
        let headers = [("transfer-encoding", "chunked".to_owned())];
        self.write(&head(200, &headers, "text/event-stream; charset=utf-8"))
    }

    fn events(&self, events: &[String]) -> std::io::Result<()> {
        for piece in events.concat().as_bytes().chunks(23) {
            let mut stream = self.stream;
            write!(stream, "{:x}\r\n", piece.len())?;
            stream.write_all(piece)?;
            stream.write_all(b"\r\n")?;
        }
        Ok(())
    }

    fn end_stream(&self) -> std::io::Result<()> {
        self.write("0\r\n\r\n")
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(text.as_bytes())
    }

    /// Sleeps, but not longer than the server lives.
    fn wait(&self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn head(status: u16, headers: &[(&str, String)], content_type: &str) -> String {
    let mut head = vec![
        format!("HTTP/1.1 {status} {status}"),
        format!("content-type: {content_type}"),
        "connection: close".to_owned(),
    ];
    head.extend(
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}")),
    );
    head.join("\r\n") + "\r\n\r\n"
}

fn named(name: &str, mut event: Value) -> String {
    event["type"] = Value::from(name);
    format!("event: {name}\ndata: {event}\n\n")
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// The model says something and, where one is given, calls a tool: its name and its input. In the
/// protocol that the request is in: Anthropic's messages, or `OpenAI`'s responses; there, a name may
/// have a namespace before it, as `mcp__memctl.search`.
pub(crate) fn calls(
    request: &RecordedRequest,
    said: &str,
    call: Option<&(&str, Value)>,
) -> Behaviour {
    let steps = request.body.to_string().len();
    if request.path.ends_with("/chat/completions") {
        return Behaviour::Stream(chat_calls(request, said, call, steps));
    }
    Behaviour::Stream(if request.is_anthropic() {
        let mut blocks = vec![json!({"type": "text", "text": said})];
        blocks.extend(call.map(|(name, input)| {
            json!({"type": "tool_use", "id": format!("toolu_{steps}"), "name": name, "input": input})
        }));
        let usage = json!({"input_tokens": 20, "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 0, "output_tokens": 1});
        let mut events = vec![named(
            "message_start",
            json!({"message": {"id": format!("msg_{steps}"), "type": "message", "role": "assistant",
                "model": request.body["model"], "content": [], "usage": usage}}),
        )];
        for (i, block) in blocks.into_iter().enumerate() {
            let is_text = block["type"] == "text";
            let (mut empty, delta) = if is_text {
                (
                    block.clone(),
                    json!({"type": "text_delta", "text": block["text"]}),
                )
            } else {
                let input = block["input"].to_string();
                (
                    block.clone(),
                    json!({"type": "input_json_delta", "partial_json": input}),
                )
            };
            if is_text {
                empty["text"] = json!("");
            } else {
                empty["input"] = json!({});
            }
            events.push(named(
                "content_block_start",
                json!({"index": i, "content_block": empty}),
            ));
            events.push(named(
                "content_block_delta",
                json!({"index": i, "delta": delta}),
            ));
            events.push(named("content_block_stop", json!({"index": i})));
        }
        let stop = if call.is_some() {
            "tool_use"
        } else {
            "end_turn"
        };
        events.push(named(
            "message_delta",
            json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 30}}),
        ));
        events.push(named("message_stop", json!({})));
        events
    } else {
        let id = format!("resp_{steps}");
        let item = match call {
            Some((name, input)) => {
                let (namespace, name) = match name.split_once('.') {
                    Some((namespace, name)) => (Some(namespace), name),
                    None => (None, *name),
                };
                let mut item = json!({"type": "function_call", "id": format!("fc_{steps}"),
                    "call_id": format!("call_{steps}"), "name": name, "arguments": input.to_string()});
                if let Some(namespace) = namespace {
                    item["namespace"] = json!(namespace);
                }
                item
            }
            None => json!({"type": "message", "id": format!("m_{steps}"), "role": "assistant",
                "content": [{"type": "output_text", "text": said}]}),
        };
        let usage = json!({"input_tokens": 120, "input_tokens_details": {"cached_tokens": 100},
            "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 150});
        vec![
            named("response.created", json!({"response": {"id": id}})),
            named(
                "response.output_item.done",
                json!({"output_index": 0, "item": item}),
            ),
            named(
                "response.completed",
                json!({"response": {"id": id, "usage": usage}}),
            ),
        ]
    })
}

fn answer_of(text: &str) -> Answer {
    match Behaviour::text(text) {
        Behaviour::Answer(answer) => answer,
        _ => unreachable!("`text` makes an answer"),
    }
}

/// The tool that must be used, where the form of the answer was asked for that way.
fn forced_tool(request: &RecordedRequest) -> Option<&str> {
    request.body.pointer("/tool_choice/name")?.as_str()
}

/// The text, and nothing of how it ends.
fn beginning_of(request: &RecordedRequest, text: &str) -> Vec<String> {
    let middle = text.char_indices().nth(text.chars().count() / 2);
    let (left, right) = text.split_at(middle.map_or(0, |(at, _)| at));
    if request.is_anthropic() {
        let (block, delta, field) = match forced_tool(request) {
            Some(name) => (
                json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}),
                "input_json_delta",
                "partial_json",
            ),
            None => (json!({"type": "text", "text": ""}), "text_delta", "text"),
        };
        let delta = |text: &str| {
            named(
                "content_block_delta",
                json!({"index": 0, "delta": {"type": delta, field: text}}),
            )
        };
        vec![
            named(
                "message_start",
                json!({"message": {"id": "msg_1", "type": "message",
                "role": "assistant", "model": request.body["model"], "content": [],
                "usage": {"input_tokens": 20, "cache_read_input_tokens": 100,
                    "cache_creation_input_tokens": 0, "output_tokens": 1}}}),
            ),
            named(
                "content_block_start",
                json!({"index": 0, "content_block": block}),
            ),
            named("ping", json!({})),
            delta(left),
            delta(right),
        ]
    } else {
        let delta = |text: &str| {
            data(
                &json!({"id": "c1", "object": "chat.completion.chunk", "model": request.body["model"],
                "choices": [{"index": 0, "delta": {"role": "assistant", "content": text},
                    "finish_reason": null}]}),
            )
        };
        vec![": waiting\n\n".to_owned(), delta(left), delta(right)]
    }
}

/// Words and a call in the chunks of the chat protocol.
fn chat_calls(
    request: &RecordedRequest,
    said: &str,
    call: Option<&(&str, Value)>,
    steps: usize,
) -> Vec<String> {
    let chunk = |delta: Value, finish: Value, usage: Value| {
        data(
            &json!({"id": format!("c{steps}"), "object": "chat.completion.chunk", "created": 1,
            "model": request.body["model"], "usage": usage,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
        )
    };
    let mut delta = json!({"role": "assistant", "content": said});
    if let Some((name, input)) = call {
        delta["tool_calls"] = json!([{"index": 0, "id": format!("call_{steps}"), "type": "function",
            "function": {"name": name, "arguments": input.to_string()}}]);
    }
    let finish = if call.is_some() { "tool_calls" } else { "stop" };
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25});
    vec![
        chunk(delta, Value::Null, Value::Null),
        chunk(json!({}), json!(finish), usage),
        "data: [DONE]\n\n".to_owned(),
    ]
}

fn stream_of(request: &RecordedRequest, answer: &Answer) -> Vec<String> {
    let mut events = beginning_of(request, &answer.text);
    if request.is_anthropic() {
        events.push(named("content_block_stop", json!({"index": 0})));
        let mut delta = json!({"delta": {"stop_reason": answer.stop, "stop_sequence": null}});
        match anthropic_usage(answer) {
            Value::Null => drop(events.remove(0)),
            usage => delta["usage"] = usage,
        }
        events.push(named("message_delta", delta));
        events.push(named("message_stop", json!({})));
    } else {
        events.push(data(&json!({"choices": [{"index": 0, "delta": {},
            "finish_reason": finish_reason(answer)}]})));
        events.push(data(&json!({"choices": [], "usage": openai_usage(answer)})));
        events.push("data: [DONE]\n\n".to_owned());
    }
    events
}

fn whole_of(request: &RecordedRequest, answer: &Answer) -> Value {
    if request.is_anthropic() {
        let block = match forced_tool(request) {
            Some(name) => json!({"type": "tool_use", "id": "toolu_1", "name": name,
                "input": serde_json::from_str::<Value>(&answer.text).unwrap_or_default()}),
            None => json!({"type": "text", "text": answer.text}),
        };
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": request.body["model"],
            "content": [block], "stop_reason": answer.stop, "usage": anthropic_usage(answer)})
    } else {
        json!({"id": "c1", "object": "chat.completion", "model": request.body["model"],
            "choices": [{"index": 0, "finish_reason": finish_reason(answer),
                "message": {"role": "assistant", "content": answer.text, "refusal": null}}],
            "usage": openai_usage(answer)})
    }
}

fn vectors_of(request: &RecordedRequest, vectors: &[Vec<f64>]) -> Value {
    let item = |(index, vector): (usize, &Vec<f64>)| json!({"object": "embedding", "index": index, "embedding": vector});
    let data: Vec<Value> = vectors.iter().enumerate().map(item).rev().collect();
    json!({"object": "list", "model": request.body["model"], "data": data,
        "usage": {"prompt_tokens": 8, "total_tokens": 8}})
}

/// A hundred of the tokens are read from the cache, where there are that many.
fn anthropic_usage(answer: &Answer) -> Value {
    answer.usage.map_or(Value::Null, |(input, output)| {
        let cached = input.min(100);
        json!({"input_tokens": input - cached, "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0, "output_tokens": output})
    })
}

fn openai_usage(answer: &Answer) -> Value {
    answer.usage.map_or(Value::Null, |(input, output)| {
        let mut usage = json!({"prompt_tokens": input, "completion_tokens": output,
            "total_tokens": input + output, "prompt_tokens_details": {"cached_tokens": input.min(100)}});
        if let Some(cost) = answer.cost {
            usage["cost"] = Value::from(cost);
        }
        usage
    })
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        "max_tokens" => "length",
        "refusal" => "content_filter",
        _ => "stop",
    }
}
