"""The tools, resources and prompts that the official conformance suite asks every server for.

Names, texts and the order of questions are fixed by the suite (`@modelcontextprotocol/conformance`, server
scenarios of the 2025-11-25 and 2026-07-28 requirements). A docstring is the description that clients see.
"""

import asyncio
import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as wire
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.tools.base import ToolResult
from mcp import MCPError

from npl_mcp.server.fastmcp_private import sdk_server

TEXT = {"type": "string"}
CITIES = ("paris", "park", "party")
NAME = {"name": TEXT}
Asked = str | wire.InputRequiredResult


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# One red pixel, and a recording without a sample.
PIXEL = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
)
FORMAT = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
SILENCE = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + FORMAT + b"data" + struct.pack("<I", 0)


def _text(text: str) -> wire.TextContent:
    return wire.TextContent(type="text", text=text)


def _image() -> wire.ImageContent:
    return wire.ImageContent(type="image", data=base64.b64encode(PIXEL).decode(), mime_type="image/png")


def _embedded(uri: str, media_type: str, text: str) -> wire.EmbeddedResource:
    contents = wire.TextResourceContents(uri=uri, mime_type=media_type, text=text)
    return wire.EmbeddedResource(type="resource", resource=contents)


def test_simple_text() -> ToolResult:
    """Answers a text."""
    return ToolResult(content=[_text("This is a simple text response for testing.")])


def test_image_content() -> ToolResult:
    """Answers a picture."""
    return ToolResult(content=[_image()])


def test_audio_content() -> ToolResult:
    """Answers a sound."""
    sound = base64.b64encode(SILENCE).decode()
    return ToolResult(content=[wire.AudioContent(type="audio", data=sound, mime_type="audio/wav")])


def test_embedded_resource() -> ToolResult:
    """Answers a resource inside the result."""
    text = "This is an embedded resource content."
    return ToolResult(content=[_embedded("test://embedded-resource", "text/plain", text)])


def test_multiple_content_types() -> ToolResult:
    """Answers a text, a picture and a resource."""
    data = '{"test":"data","value":123}'
    resource = _embedded("test://mixed-content-resource", "application/json", data)
    return ToolResult(content=[_text("Multiple content types test:"), _image(), resource])


def test_error_handling() -> str:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(ctx: Context) -> str:
    """Reports its progress three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await asyncio.sleep(0.02)
    return "complete"


async def test_logging_tool(ctx: Context) -> str:
    """Sends a log message."""
    await ctx.info("a log message")
    return "logged"


async def test_tool_with_logging(ctx: Context) -> str:
    """Sends three log messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(0.02)
    return "logged"


async def test_missing_capability(ctx: Context) -> str:
    """Needs a client that samples."""
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        raise MCPError(
            code=wire.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="this tool needs the sampling capability",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return "sampling is there"


async def _filled_in(ctx: Context, question: str, fields: Mapping[str, Any], required: Sequence[str]) -> str:
    """Ask the client by a request, as a server with sessions can."""
    schema = {"type": "object", "properties": dict(fields), "required": list(required)}
    answer = await ctx.session.elicit_form(question, schema)
    return f"The user's answer: {answer.action} {answer.content}"


async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks for a name and an address."""
    return await _filled_in(ctx, message, {"username": TEXT, "email": TEXT}, ("username", "email"))


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a default for every type."""
    fields = {
        "name": {**TEXT, "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {**TEXT, "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _filled_in(ctx, "Review the values", fields, ())


async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with every kind of choice."""
    plain = {**TEXT, "enum": ["option1", "option2", "option3"]}
    words = ("First Option", "Second Option", "Third Option")
    titled = [{"const": f"value{number}", "title": word} for number, word in enumerate(words, 1)]
    former = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    fields = {
        "untitledSingle": plain,
        "titledSingle": {**TEXT, "oneOf": titled},
        "legacyEnum": {**TEXT, **former},
        "untitledMulti": {"type": "array", "items": plain},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _filled_in(ctx, "Choose", fields, ())


def _form(question: str, fields: Mapping[str, Any]) -> wire.ElicitRequest:
    schema = {"type": "object", "properties": dict(fields), "required": list(fields)}
    params = wire.ElicitRequestFormParams(message=question, requested_schema=schema)
    return wire.ElicitRequest(method="elicitation/create", params=params)


def _sample(question: str) -> wire.CreateMessageRequest:
    messages = [wire.SamplingMessage(role="user", content=_text(question))]
    params = wire.CreateMessageRequestParams(messages=messages, max_tokens=100)
    return wire.CreateMessageRequest(method="sampling/createMessage", params=params)


def _roots() -> wire.ListRootsRequest:
    return wire.ListRootsRequest(method="roots/list")


def _ask(state: str | None = None, **requests: Any) -> wire.InputRequiredResult:
    return wire.InputRequiredResult(input_requests=requests, request_state=state)


def _answers(ctx: Context) -> Mapping[str, Any]:
    return ctx.input_responses or {}


def _field(ctx: Context, key: str, name: str) -> Any:
    """Read a field of a completed form; ``None`` if there is no such form or field."""
    return (getattr(_answers(ctx).get(key), "content", None) or {}).get(name)


async def test_input_required_result_elicitation(ctx: Context) -> Asked:
    """Asks for a name."""
    name = _field(ctx, "user_name", "name")
    return f"Hello, {name}!" if name else _ask(user_name=_form("What is your name?", NAME))


async def test_input_required_result_sampling(ctx: Context) -> Asked:
    """Asks the client's model."""
    answer = _answers(ctx).get("capital_question")
    if answer is None:
        return _ask(capital_question=_sample("What is the capital of France?"))
    return f"The model says {answer.content}"


async def test_input_required_result_list_roots(ctx: Context) -> Asked:
    """Asks for the client's roots."""
    answer = _answers(ctx).get("client_roots")
    return _ask(client_roots=_roots()) if answer is None else f"The roots are {answer.roots}"


async def test_input_required_result_request_state(ctx: Context) -> Asked:
    """Asks for a confirmation and keeps a state with the client."""
    if ctx.input_responses is None:
        return _ask("kept", confirm=_form("Please confirm", {"ok": {"type": "boolean"}}))
    return "state-ok"


async def test_input_required_result_tampered_state(ctx: Context) -> Asked:
    """Asks for a confirmation; its state is sealed, so a changed one never comes here."""
    return await test_input_required_result_request_state(ctx)


async def test_input_required_result_multiple_inputs(ctx: Context) -> Asked:
    """Asks for three things at once."""
    if ctx.input_responses is None:
        return _ask(
            "three",
            user_name=_form("What is your name?", NAME),
            greeting=_sample("Generate a greeting"),
            client_roots=_roots(),
        )
    return "all three were given"


async def test_input_required_result_multi_round(ctx: Context) -> Asked:
    """Asks one question after the other."""
    if "step2" in _answers(ctx):
        return "both steps were answered"
    if "step1" in _answers(ctx):
        return _ask("second", step2=_form("Step 2: which colour?", {"color": TEXT}))
    return _ask("first", step1=_form("Step 1: what is your name?", NAME))


async def test_input_required_result_capabilities(ctx: Context) -> Asked:
    """Asks only for what the client can give."""
    able = ctx.session.client_capabilities or wire.ClientCapabilities()
    requests: dict[str, Any] = {}
    if able.elicitation is not None:
        requests["user_name"] = _form("What is your name?", NAME)
    if able.sampling is not None:
        requests["capital_question"] = _sample("What is the capital of France?")
    return _ask(**requests) if requests and ctx.input_responses is None else "nothing more to ask"


async def test_streaming_elicitation(ctx: Context) -> Asked:
    """Reports its progress, then asks for a name."""
    await ctx.report_progress(0, 1)
    return _ask(user_name=_form("What is your name?", NAME)) if ctx.input_responses is None else "done"


async def test_input_required_result_prompt(ctx: Context) -> Asked:
    """Asks what the prompt is about."""
    given = _field(ctx, "user_context", "context")
    return given or _ask(user_context=_form("What is it about?", {"context": TEXT}))


def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 (the suite's name)
    """A prompt that brings a resource along."""
    resource = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [Message(resource), Message("Please process the embedded resource above.")]


def test_prompt_with_image() -> list[Message]:
    """A prompt that brings a picture along."""
    return [Message(_image()), Message("Please analyze the image above.")]


def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    """A picture."""
    return PIXEL


def template(id: str) -> str:
    """A text for every identifier."""
    return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


def complete(_ref: Any, argument: Any, _context: Any) -> list[str]:
    """Propose what begins as the argument does."""
    return [city for city in CITIES if city.startswith(argument.value)]


TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
    test_logging_tool,
    test_tool_with_logging,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_missing_capability,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_streaming_elicitation,
)
PROMPTS = (
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
)
RESOURCES = (
    ("test://static-text", "text/plain", static_text),
    ("test://static-binary", "image/png", static_binary),
    ("test://template/{id}/data", "application/json", template),
)


def mount(server: FastMCP[Any]) -> None:
    """Add everything that the suite asks for to a server."""
    for tool in TOOLS:
        server.tool(tool)
    for prompt in PROMPTS:
        server.prompt(prompt)
    for uri, media_type, resource in RESOURCES:
        server.resource(uri, mime_type=media_type)(resource)
    server.completion(complete)
    # The package's server sends no log messages; the suite's tools do.
    sdk_server(server).add_request_handler(
        "logging/setLevel", wire.SetLevelRequestParams, server._on_set_logging_level
    )
