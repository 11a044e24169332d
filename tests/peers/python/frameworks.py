# Frameworks for agents as clients of the matrix: their tools are called as their agents would call them,
# only without a model that chooses.
#   frameworks.py FRAMEWORK JSON
import contextlib
import logging
import sys
import types as python_types

from common import ada, job, kill_and_resume, main, run_steps

logging.disable(logging.CRITICAL)
way = job["way"]
try:
    import mcp_types as types
except ImportError:
    from mcp import types


async def elicit(ctx, params):
    return types.ElicitResult(action="accept", content=ada)


async def sample(ctx, params):
    said = types.TextContent(type="text", text="sampled: " + params.messages[0].content.text)
    return types.CreateMessageResult(role="assistant", model="m", content=said)


async def roots(ctx):
    return types.ListRootsResult(roots=[types.Root(uri="file:///peers", name="peers")])


def target(stdio, http, sse=None, ws=None):
    """What this framework wants to know of a server that it reaches by the way of the job."""
    if way == "stdio":
        return stdio(job["command"][0], job["command"][1:])
    return {"http": http, "sse": sse, "ws": ws}[way](job["url"])


@contextlib.asynccontextmanager
async def langchain():
    from langchain_mcp_adapters.client import MultiServerMCPClient
    over = lambda name: lambda url: {"transport": name, "url": url}
    client = MultiServerMCPClient({"peer": target(
        lambda command, args: {"transport": "stdio", "command": command, "args": args},
        over("streamable_http"), over("sse"), over("websocket"))})
    tools = {}

    async def listed(step):
        tools.update({t.name: t for t in await client.get_tools()})
        return [{"name": t.name, "description": t.description, "schema": t.args_schema} for t in tools.values()]

    async def call(step):
        if step["name"] not in tools:
            raise LookupError(step["name"])
        got = await tools[step["name"]].ainvoke(step.get("args") or {})
        return [{k: v for k, v in block.items() if k != "id"} for block in got]  # the framework's own random id

    async def read(step):
        return [[blob.mimetype, str(blob.data)] for blob in await client.get_resources("peer", uris=step["uri"])]
    yield {"list": listed, "call": call, "read": read,
           "get": lambda s: client.get_prompt("peer", s["name"], arguments=s["args"])}


@contextlib.asynccontextmanager
async def pydantic_ai():
    from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
    from pydantic_ai.mcp import MCPToolset

    async def answer(message, kind, params, ctx):
        return kind(**{k: ada[k] for k in kind.__dataclass_fields__})

    async def say(messages, params, ctx):
        return "sampled: " + messages[0].content.text
    server = MCPToolset(target(StdioTransport, StreamableHttpTransport, SSETransport),
                        elicitation_handler=answer, sampling_handler=say, roots=["file:///peers"])
    async with server:
        lists = {"tools": server.list_tools, "resources": server.list_resources, "prompts": server.list_prompts,
                 "templates": server.list_resource_templates}
        yield {"list": lambda s: lists[s["what"]](), "call": lambda s: server.direct_call_tool(s["name"], s.get("args") or {}),
               "read": lambda s: server.read_resource(s["uri"]), "get": lambda s: server.get_prompt(s["name"], s["args"])}


@contextlib.asynccontextmanager
async def openai_agents():
    from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
    patient = {"client_session_timeout_seconds": 30}
    server = target(lambda command, args: MCPServerStdio(params={"command": command, "args": args}, **patient),
                    lambda url: MCPServerStreamableHttp(params={"url": url}, **patient),
                    lambda url: MCPServerSse(params={"url": url}, **patient))
    async with server:
        lists = {"tools": server.list_tools, "resources": server.list_resources, "prompts": server.list_prompts,
                 "templates": server.list_resource_templates}
        yield {"list": lambda s: lists[s["what"]](), "call": lambda s: server.call_tool(s["name"], s.get("args") or {}),
               "read": lambda s: server.read_resource(s["uri"]), "get": lambda s: server.get_prompt(s["name"], s["args"])}


@contextlib.asynccontextmanager
async def google_adk():
    from google.adk.tools.mcp_tool.mcp_session_manager import (
        SseConnectionParams, StdioConnectionParams, StreamableHTTPConnectionParams)
    from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
    from mcp import StdioServerParameters
    toolset = McpToolset(elicitation_callback=elicit, sampling_callback=sample, connection_params=target(
        lambda command, args: StdioConnectionParams(server_params=StdioServerParameters(command=command, args=args), timeout=30),
        lambda url: StreamableHTTPConnectionParams(url=url, timeout=30), lambda url: SseConnectionParams(url=url, timeout=30)))
    tools = {}

    async def listed(step):
        if step["what"] == "resources":
            return await toolset.list_resources()
        tools.update({t.name: t for t in await toolset.get_tools()})
        return [{"name": t.name, "description": t.description, "declared": t._get_declaration()} for t in tools.values()]

    async def call(step):
        if step["name"] not in tools:
            raise LookupError(step["name"])
        nobody = python_types.SimpleNamespace(state={}, custom_metadata={}, _invocation_context=None, tool_confirmation=None)
        return await tools[step["name"]].run_async(args=step.get("args") or {}, tool_context=nobody)
    yield {"list": listed, "call": call}
    await toolset.close()


@contextlib.asynccontextmanager
async def mcp_use():
    from mcp_use import MCPClient
    by_url = lambda url: {"url": url}
    entry = target(lambda command, args: {"command": command, "args": args}, by_url, by_url, lambda url: {"ws_url": url})
    client = MCPClient({"mcpServers": {"peer": entry}}, elicitation_callback=elicit, sampling_callback=sample,
                       list_roots_callback=roots)
    session = await client.create_session("peer")
    lists = {"tools": session.list_tools, "resources": session.list_resources, "prompts": session.list_prompts}
    yield {"list": lambda s: lists[s["what"]](), "call": lambda s: session.call_tool(s["name"], s.get("args") or {}),
           "read": lambda s: session.read_resource(s["uri"]), "get": lambda s: session.get_prompt(s["name"], s["args"])}
    await client.close_all_sessions()


async def serve():
    async with globals()[sys.argv[1]]() as ops:
        ops["kill"] = lambda s: kill_and_resume(ops["call"], s)
        await run_steps(ops)


main(serve())
