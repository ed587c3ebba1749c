# An agent over OpenAI's client, traced by an instrumentation of others into a file: `openinference`, which
# knows messages and tools by its own names, or `openllmetry`, of before the conventions had messages. The
# model is a server on the loopback that fails once and then knows better.

import http.server, json, sys, threading
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.exporter.otlp.json.file import FileSpanExporter

which, file = sys.argv[1:]
COMMANDS = ["python3 report.py", "python3 report.py --lenient"]
OUTPUTS = ["Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nKeyError: 'x'", "None"]


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turn = sum(message["role"] == "tool" for message in asked["messages"])
        message = {"role": "assistant", "content": "Done."}
        if turn < len(COMMANDS):
            function = {"name": "shell", "arguments": json.dumps({"command": COMMANDS[turn]})}
            call = {"id": f"call_{turn}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
if which == "openinference":
    from openinference.instrumentation import TracerProvider as Provider
    from openinference.instrumentation.openai import OpenAIInstrumentor

    provider = Provider()
else:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(file)))
OpenAIInstrumentor().instrument(tracer_provider=provider)

import openai

tracer = provider.get_tracer("an.agent")


def shell(command):
    if command == COMMANDS[0]:
        raise KeyError("x")
    return OUTPUTS[1]


if which == "openinference":
    shell = tracer.tool(shell)
client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")
messages = [{"role": "user", "content": "print x"}]
with tracer.start_as_current_span("agent"):
    while True:
        said = client.chat.completions.create(model="m", messages=messages).choices[0].message
        messages.append({name: value for name, value in said.model_dump().items() if value is not None})
        if not said.tool_calls:
            break
        call = said.tool_calls[0]
        try:
            output = shell(json.loads(call.function.arguments)["command"])
        except KeyError:
            output = OUTPUTS[0]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
provider.shutdown()
