# A server of the matrix on the official Python SDK 1, any release of it.
#   mcp1_server.py stdio|sse|http
import contextlib
import inspect
import json
import sys

import anyio
from mcp import types
from mcp.server import Server
from mcp.shared.exceptions import McpError

from common import completion, fill, listen, offer, prompts, read, run_tool, text, tools

server = Server("peer", "1.0.0") if "version" in inspect.signature(Server.__init__).parameters else Server("peer")
# Tasks came with release 1.23.
tasks = hasattr(server, "experimental")
task_echo = {"name": "task_echo", "description": "Says it later", "execution": {"taskSupport": "required"},
             "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
if tasks:
    server.experimental.enable_tasks()
ASKS = {
    "elicitation/create": ("ElicitRequest", "ElicitResult"),
    "sampling/createMessage": ("CreateMessageRequest", "CreateMessageResult"),
    "roots/list": ("ListRootsRequest", "ListRootsResult"),
}


def on(name):
    """Registers a handler for requests of this name, given their params as a dictionary."""
    request = getattr(types, name + "Request")

    def register(handler):
        async def handle(r):
            params = r.params.model_dump(by_alias=True, mode="json") if r.params else {}
            return types.ServerResult(await handler(params, r.params))
        server.request_handlers[request] = handle
    return register


def error(code, message):
    return McpError(types.ErrorData(code=code, message=message))


async def notify(kind, params, ctx):
    one = types.ServerNotification(getattr(types, kind).model_validate({"method": kind_methods[kind], "params": params}))
    send = ctx.session.send_notification
    if "related_request_id" in inspect.signature(send).parameters:
        await send(one, related_request_id=ctx.request_id)
    else:
        await send(one)


kind_methods = {
    "LoggingMessageNotification": "notifications/message", "ProgressNotification": "notifications/progress",
}


async def ask(request, ctx):
    kind, result = ASKS[request["method"]]
    send = ctx.session.send_request
    more = {}
    if "metadata" in inspect.signature(send).parameters:
        from mcp.shared.message import ServerMessageMetadata
        more = {"metadata": ServerMessageMetadata(related_request_id=ctx.request_id)}
    wanted = types.ServerRequest(getattr(types, kind).model_validate(request))
    return (await send(wanted, getattr(types, result), **more)).model_dump(by_alias=True, mode="json", exclude_none=True)


@on("ListTools")
async def _(params, raw):
    return types.ListToolsResult(tools=[row["tool"] for row in offer["tools"]] + [task_echo] * tasks)


@on("CallTool")
async def _(params, raw):
    ctx = server.request_context
    if tasks and params["name"] == "task_echo":
        async def later(task):
            await anyio.sleep(0.4)
            return types.CallToolResult.model_validate(text(params["arguments"]["text"]))
        return await ctx.experimental.run_task(later)
    row = tools.get(params["name"])
    if not row:
        raise error(-32602, f"Unknown tool: {params['name']}")
    if "result" in row:
        return types.CallToolResult.model_validate(row["result"])
    if "asks" in row:
        answers = {key: await ask(request, ctx) for key, request in row["asks"].items()}
        return types.CallToolResult.model_validate(text(json.dumps(answers)))
    token = ctx.meta.progressToken if ctx.meta else None

    async def progress(done, total):
        if token is not None:
            await notify("ProgressNotification", {"progressToken": token, "progress": done, "total": total}, ctx)

    async def log(level, data):
        await notify("LoggingMessageNotification", {"level": level, "logger": "peer", "data": data}, ctx)

    done = await run_tool(params["name"], params.get("arguments") or {}, log, progress, ctx.session.send_resource_updated)
    return types.CallToolResult.model_validate(text(done))


@on("ListResources")
async def _(params, raw):
    return types.ListResourcesResult(resources=[row["resource"] for row in offer["resources"]])


@on("ListResourceTemplates")
async def _(params, raw):
    return types.ListResourceTemplatesResult(resourceTemplates=[offer["template"]])


@on("ReadResource")
async def _(params, raw):
    found = read(params["uri"])
    if not found:
        raise error(-32002, f"Unknown resource: {params['uri']}")
    return types.ReadResourceResult(contents=[found])


@on("ListPrompts")
async def _(params, raw):
    return types.ListPromptsResult(prompts=[row["prompt"] for row in offer["prompts"]])


@on("GetPrompt")
async def _(params, raw):
    if params["name"] not in prompts:
        raise error(-32602, f"Unknown prompt: {params['name']}")
    return types.GetPromptResult(messages=fill(prompts[params["name"]]["messages"], params.get("arguments") or {}))


@on("Complete")
async def _(params, raw):
    return types.CompleteResult(completion=completion(params["argument"]["value"]))


for name in ["Subscribe", "Unsubscribe", "SetLevel"]:
    @on(name)
    async def _(params, raw):
        return types.EmptyResult()


def initialization(make=server.create_initialization_options):
    # No release of SDK 1 declares subscriptions by itself, though all of them support them.
    options = make()
    options.capabilities.resources.subscribe = True
    return options


server.create_initialization_options = initialization

if sys.argv[1] == "stdio":
    from mcp.server.stdio import stdio_server

    async def stdio():
        async with stdio_server() as streams:
            await server.run(*streams, initialization())
    anyio.run(stdio)
else:
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route
    if sys.argv[1] == "sse":
        from mcp.server.sse import SseServerTransport
        from starlette.responses import Response
        sse = SseServerTransport("/messages/")

        async def handle(request):
            async with sse.connect_sse(request.scope, request.receive, request._send) as streams:
                await server.run(*streams, initialization())
            return Response()
        listen(Starlette(routes=[Route("/sse", handle), Mount("/messages/", app=sse.handle_post_message)]), "/sse")
    else:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        manager = StreamableHTTPSessionManager(app=server)

        @contextlib.asynccontextmanager
        async def lifespan(app):
            async with manager.run():
                yield

        async def mcp(scope, receive, send):
            await manager.handle_request(scope, receive, send)
        listen(Starlette(routes=[Mount("/mcp", app=mcp)], lifespan=lifespan), "/mcp/")  # not all clients follow a redirect
