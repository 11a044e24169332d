# A client of the matrix on the official Python SDK 1, any release of it.
import asyncio
import contextlib
import inspect

from mcp import ClientSession, types

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
    kind = getattr(message, "root", None)
    if isinstance(kind, types.ResourceUpdatedNotification):
        updates.append(kind.params)
    if isinstance(kind, types.LoggingMessageNotification) and not takes("logging_callback"):
        await log(kind.params)

takes = inspect.signature(ClientSession.__init__).parameters.__contains__


async def connection(stack):
    if job["way"] == "stdio":
        from mcp.client.stdio import StdioServerParameters, stdio_client
        return stdio_client(StdioServerParameters(command=job["command"][0], args=job["command"][1:]))
    if job["way"] == "sse":
        from mcp.client.sse import sse_client
        return sse_client(job["url"])
    if job["way"] == "ws":
        from mcp.client.websocket import websocket_client
        return websocket_client(job["url"])
    from mcp.client.streamable_http import streamablehttp_client
    return streamablehttp_client(job["url"])


async def serve():
    async with contextlib.AsyncExitStack() as stack:
        streams = await stack.enter_async_context(await connection(stack))
        callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots,
                     "logging_callback": log, "message_handler": hear}
        session = ClientSession(streams[0], streams[1], **{k: v for k, v in callbacks.items() if takes(k)})
        if not takes("sampling_callback"):
            answer_by_hand(session)
        await stack.enter_async_context(session)
        started = await session.initialize()
        await run_steps(operations(session, started))


def answer_by_hand(session):
    """Release 1.0 hands questions and notifications out as a stream."""
    async def read():
        async for message in session.incoming_messages:
            if isinstance(message, types.ServerNotification):
                await hear(message)
            elif hasattr(message, "respond"):
                root = message.request.root
                answer = await (sample(None, root.params) if isinstance(root, types.CreateMessageRequest) else roots(None))
                await message.respond(types.ClientResult(answer))
    session._peer = asyncio.ensure_future(read())


def operations(session, started):
    def call(step, **more):
        return session.call_tool(step["name"], step.get("args") or {}, **more)

    async def log_(step):
        await session.set_logging_level("debug")
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
        await session.subscribe_resource(types.AnyUrl(step["uri"]))
        await call(step["touch"])
        await until(lambda: updates)
        await session.unsubscribe_resource(types.AnyUrl(step["uri"]))
        return updates

    async def task(step):
        created = await session.experimental.call_tool_as_task(step["name"], step["args"], ttl=60_000)
        task_id, seen = created.task.taskId, ["created", created.task.status]
        async for status in session.experimental.poll_task(task_id):
            if status.status != seen[-1]:
                seen.append(status.status)
        result = await session.experimental.get_task_result(task_id, types.CallToolResult)
        again = await session.experimental.get_task_result(task_id, types.CallToolResult)
        listed = (await session.experimental.list_tasks()).tasks
        return {"seen": [*seen, result.content[0].text], "again": again.content[0].text, "listed": any(t.taskId == task_id for t in listed)}

    async def version(step):
        return started.protocolVersion

    async def capabilities(step):
        return started.capabilities

    async def server(step):
        return started.serverInfo

    lists = {"tools": session.list_tools, "resources": session.list_resources, "prompts": session.list_prompts,
             "templates": getattr(session, "list_resource_templates", None)}
    return {
        "version": version, "capabilities": capabilities, "server": server,
        "list": lambda s: lists[s["what"]](),
        "call": call, "log": log_, "progress": progress, "subscribe": subscribe,
        "read": lambda s: session.read_resource(types.AnyUrl(s["uri"])),
        "get": lambda s: session.get_prompt(s["name"], s["args"]),
        "complete": lambda s: session.complete(types.PromptReference.model_validate(s["params"]["ref"]), s["params"]["argument"]),
        "cancel": lambda s: cancelled(call, s),
        "kill": lambda s: kill_and_resume(call, s), "task": task,
    }


main(serve())
