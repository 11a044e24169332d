# A server of the matrix on the official Python SDK 2, in both eras.
#   mcp2_server.py stdio|http
import json
import sys

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from common import completion, fill, listen, offer, prompts, read, run_tool, text, tools

MODERN = "2026-07-28"
ASKS = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
bus = InMemorySubscriptionBus()


async def ask(ctx, params, asks, plain):
    """The answers to all of these, or a result that asks for them."""
    if ctx.protocol_version == MODERN and not plain:
        got = params.input_responses or {}
        if set(got) >= set(asks):
            return {key: got[key].model_dump(by_alias=True, mode="json", exclude_none=True) for key in asks}, None
        wanted = {k: ASKS[r["method"]][0].model_validate(r) for k, r in asks.items()}
        return None, types.InputRequiredResult(input_requests=wanted)
    answers = {}
    for key, request in asks.items():
        kind, result = ASKS[request["method"]]
        answer = await ctx.session.send_request(
            kind.model_validate(request), result, metadata=ServerMessageMetadata(related_request_id=ctx.request_id))
        answers[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return answers, None


async def call_tool(ctx, params):
    row = tools.get(params.name)
    if not row:
        raise MCPError(-32602, f"Unknown tool: {params.name}")
    if "result" in row:
        return types.CallToolResult.model_validate(row["result"])
    if "asks" in row:
        answers, question = await ask(ctx, params, row["asks"], row.get("plain"))
        return question or types.CallToolResult.model_validate(text(json.dumps(answers)))

    async def touch(uri):
        await bus.publish(ResourceUpdated(uri=uri))
        if ctx.protocol_version != MODERN:
            await ctx.session.send_resource_updated(uri)

    async def log(level, data):
        await ctx.session.send_log_message(level, data, "peer", related_request_id=ctx.request_id)
    done = await run_tool(params.name, params.arguments or {}, log, ctx.session.report_progress, touch)
    return types.CallToolResult.model_validate(text(done))


async def read_resource(ctx, params):
    found = read(str(params.uri))
    if not found:
        raise MCPError(-32602 if ctx.protocol_version == MODERN else -32002, "Unknown resource", {"uri": str(params.uri)})
    return types.ReadResourceResult(contents=[found])


async def get_prompt(ctx, params):
    if params.name not in prompts:
        raise MCPError(-32602, f"Unknown prompt: {params.name}")
    return types.GetPromptResult(messages=fill(prompts[params.name]["messages"], params.arguments or {}))


def giving(result):
    async def give(ctx, params):
        return result
    return give


async def complete(ctx, params):
    return types.CompleteResult(completion=completion(params.argument.value))


nothing = giving(types.EmptyResult())
server = Server(
    "peer", version="1.0.0",
    on_list_tools=giving(types.ListToolsResult(tools=[row["tool"] for row in offer["tools"]])), on_call_tool=call_tool,
    on_list_resources=giving(types.ListResourcesResult(resources=[row["resource"] for row in offer["resources"]])),
    on_list_resource_templates=giving(types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [offer["template"]]})),
    on_read_resource=read_resource, on_subscribe_resource=nothing, on_unsubscribe_resource=nothing,
    on_subscriptions_listen=ListenHandler(bus), on_set_logging_level=nothing,
    on_list_prompts=giving(types.ListPromptsResult(prompts=[row["prompt"] for row in offer["prompts"]])),
    on_get_prompt=get_prompt, on_completion=complete,
)

if sys.argv[1] == "stdio":
    from mcp.server.stdio import stdio_server

    async def stdio():
        async with stdio_server() as streams:
            await server.run(*streams, server.create_initialization_options())
    anyio.run(stdio)
else:
    listen(server.streamable_http_app(), "/mcp")
