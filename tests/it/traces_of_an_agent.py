# An agent of one tool that fails and then works, traced by the SDK of OpenTelemetry into a file.

import json, sys
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.exporter.otlp.json.file import FileSpanExporter

provider = TracerProvider(resource=Resource.create({"service.name": "an-agent"}))
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(sys.argv[1])))
tracer = provider.get_tracer("an.agent")


def shell(call, command, result):
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "shell",
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.call.arguments": json.dumps({"command": command}),
    }
    try:
        with tracer.start_as_current_span("execute_tool shell", attributes=attributes) as span:
            if result is None:
                raise LookupError("ROWS is not set")
            span.set_attribute("gen_ai.tool.call.result", result)
    except LookupError:
        pass


with tracer.start_as_current_span("invoke_agent an-agent", attributes={"gen_ai.conversation.id": "conv-7"}):
    shell("call_1", "python3 report.py", None)
    shell("call_2", "ROWS=data/rows.csv python3 report.py", "None")
provider.shutdown()
