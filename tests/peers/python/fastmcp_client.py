# A client of the matrix on FastMCP 2, 3 and 4.
import asyncio

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

from common import ada, cancelled, job, kill_and_resume, logs, main, run_steps

try:
    import mcp_types as types
except ImportError:
    from mcp import types


async def elicit(message, response_type, params, ctx):
    return response_type(**{k: ada[k] for k in response_type.__dataclass_fields__}) if response_type else {}


async def sample(messages, params, ctx):
    return "sampled: " + messages[0].content.text


async def log(message):
    logs.append([message.level, message.data.get("msg") if isinstance(message.data, dict) else message.data])


def target():
    if job["way"] == "stdio":
        return StdioTransport(job["command"][0], job["command"][1:])
    return (SSETransport if job["way"] == "sse" else StreamableHttpTransport)(job["url"])


async def serve():
    async with Client(target(), elicitation_handler=elicit, sampling_handler=sample, log_handler=log,
                      roots=["file:///peers"]) as client:
        await run_steps(operations(client))


def operations(client):
    def call(step, **more):
        return client.call_tool_mcp(step["name"], step.get("args") or {}, **more)

    async def log_(step):
        logs.clear()
        await call(step)
        await asyncio.sleep(0.3)
        return logs

    async def progress(step):
        seen = []

        async def on_progress(done, total, message=None):
            seen.append([done, total])
        await call(step, progress_handler=on_progress)
        await asyncio.sleep(0.3)
        return seen

    async def structured(step):
        if step["step"] != "structured":
            return await call(step)
        return {"structured": (await client.call_tool(step["name"], {})).structured_content}

    async def capabilities(step):
        return client.initialize_result.capabilities

    async def server(step):
        return getattr(client.initialize_result, "serverInfo", None) or client.initialize_result.server_info

    async def version(step):
        return getattr(client.initialize_result, "protocolVersion", None) or client.initialize_result.protocol_version

    lists = {"tools": client.list_tools, "resources": client.list_resources, "prompts": client.list_prompts,
             "templates": client.list_resource_templates}
    return {
        "version": version, "capabilities": capabilities, "server": server,
        "list": lambda s: lists[s["what"]](),
        "call": structured, "log": log_, "progress": progress,
        "read": lambda s: client.read_resource_mcp(s["uri"]),
        "get": lambda s: client.get_prompt(s["name"], s["args"]),
        "complete": lambda s: client.complete_mcp(types.PromptReference.model_validate(s["params"]["ref"]), s["params"]["argument"]),
        "cancel": lambda s: cancelled(call, s),
        "kill": lambda s: kill_and_resume(call, s),
    }


main(serve())
