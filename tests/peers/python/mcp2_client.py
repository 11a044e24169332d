# A client of the matrix on the official Python SDK 2, which finds the era itself.
import asyncio

import mcp_types as types
from mcp import Client, StdioServerParameters

from common import ada, cancelled, job, kill_and_resume, logs, main, run_steps, until, updates


async def elicit(ctx, params):
    return types.ElicitResult(action="accept", content=ada)


async def sample(ctx, params):
    said = types.TextContent(type="text", text="sampled: " + params.messages[0].content.text)
    return types.CreateMessageResult(role="assistant", model="m", content=said)


async def roots(ctx):
    return types.ListRootsResult(roots=[types.Root(uri="file:///peers", name="peers")])


async def log(params):
    logs.append([params.level, params.data])


async def hear(message):
    if isinstance(message, types.ResourceUpdatedNotification):
        updates.append(str(message.params.uri))


def target():
    if job["way"] == "stdio":
        return StdioServerParameters(command=job["command"][0], args=job["command"][1:])
    if job["way"] == "sse":
        from mcp.client.sse import sse_client
        return sse_client(job["url"])
    return job["url"]


async def serve():
    async with Client(target(), elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots,
                      logging_callback=log, message_handler=hear, log_level="debug", cache=None,
                      **({"mode": "legacy"} if job["way"] == "sse" else {})) as client:
        await run_steps(operations(client))


def operations(client):
    modern = client.protocol_version == "2026-07-28"

    def call(step, **more):
        return client.call_tool(step["name"], step.get("args") or {}, **more)

    async def log_(step):
        if not modern:
            await client.set_logging_level("debug")
        logs.clear()
        await call(step)
        await asyncio.sleep(0.3)
        return logs

    async def progress(step):
        seen = []

        async def on_progress(done, total, message=None):
            seen.append([done, total])
        await call(step, progress_callback=on_progress)
        await asyncio.sleep(0.3)
        return seen

    async def subscribe(step):
        if modern:
            async with client.listen(resource_subscriptions=[step["uri"]]) as events:
                await call(step["touch"])
                async for event in events:
                    return [str(event.uri)]
        await client.subscribe_resource(step["uri"])
        await call(step["touch"])
        await until(lambda: updates)
        await client.unsubscribe_resource(step["uri"])
        return updates

    def fact(name):
        async def give(step):
            return getattr(client, name)
        return give

    lists = {"tools": client.list_tools, "resources": client.list_resources, "prompts": client.list_prompts,
             "templates": client.list_resource_templates}
    return {
        "version": fact("protocol_version"), "capabilities": fact("server_capabilities"), "server": fact("server_info"),
        "list": lambda s: lists[s["what"]](),
        "call": call, "log": log_, "progress": progress, "subscribe": subscribe,
        "read": lambda s: client.read_resource(s["uri"]),
        "get": lambda s: client.get_prompt(s["name"], s["args"]),
        "complete": lambda s: client.complete(types.PromptReference.model_validate(s["params"]["ref"]), s["params"]["argument"]),
        "cancel": lambda s: cancelled(call, s),
        "kill": lambda s: kill_and_resume(call, s),
    }


main(serve())
