# What the Python peers share: the offer, a client's job and how its steps are reported, and the servers'
# ways of listening.
import asyncio
import json
import os
import pathlib
import re
import socket
import sys

offer = json.loads((pathlib.Path(__file__).parent.parent / "offer.json").read_text())
tools = {row["tool"]["name"]: row for row in offer["tools"]}
prompts = {row["prompt"]["name"]: row for row in offer["prompts"]}
resources = {row["resource"]["uri"]: row["contents"] for row in offer["resources"]}
slow = {}


# --- servers ---

def text(s):
    return {"content": [{"type": "text", "text": s}]}


def fill(value, args):
    put = lambda m: json.dumps(args[m[1]])[1:-1] if m[1] in args else m[0]
    return json.loads(re.sub(r"\{(\w+)\}", put, json.dumps(value)))


def read(uri):
    """The contents of a resource, None when there is none."""
    found = re.fullmatch(r"test://template/([^/]+)/data", uri)
    return fill(offer["templateContents"], {"id": found[1]}) if found else resources.get(uri)


def completion(value):
    values = [w for w in ["paris", "park", "party"] if w.startswith(value)]
    return {"values": values, "total": len(values), "hasMore": False}


async def run_tool(name, args, log=None, progress=None, touch=None):
    """What a tool without a fixed result does, given what its SDK calls these things."""
    if name == "echo":
        return json.dumps(args, ensure_ascii=False)
    if name == "die":
        os._exit(1)
    if name == "slow_state":
        return slow.get(args["tag"], "unknown")
    if name == "slow":
        slow[args["tag"]] = "running"
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            slow[args["tag"]] = "cancelled"
            raise
        return "finished"
    if name == "touch":
        await touch(args["uri"])
        return args["uri"] + " updated"
    if name == "test_tool_with_logging":
        for what in ["started", "processing", "completed"]:
            await log("info", f"Tool execution {what}")
            await asyncio.sleep(0.05)
        return "logged three times"
    for done in [0, 50, 100]:
        await progress(done, 100)
        await asyncio.sleep(0.05)
    return "all done"


def listen(app, path):
    """Serves an ASGI application on a free port."""
    import uvicorn
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(64)  # before the address is printed: some clients are fast
    print(f"listening on http://127.0.0.1:{sock.getsockname()[1]}{path}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run(sockets=[sock])


# --- clients ---

job = json.loads(sys.argv[-1]) if sys.argv[-1].startswith("{") else None
ada = {"username": "ada", "email": "ada@example.com", "name": "ada"}
logs, updates = [], []


def plain(value):
    """A result as JSON, whatever classes a library made of it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {k: plain(getattr(value, k)) for k in value.__dataclass_fields__ if not k.startswith("_")}
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def say(step, **what):
    print(json.dumps({"step": step, **what}), flush=True)


def failure(e):
    while getattr(e, "exceptions", None):
        e = e.exceptions[0]
    inner = getattr(e, "error", None)
    return {"code": getattr(inner, "code", None) or type(e).__name__, "message": getattr(inner, "message", None) or str(e)}


def is_error(result):
    """SDK 1 and SDK 2 spell it differently; frameworks give a dictionary, or only the text that their model reads."""
    flag = result.get("isError") if isinstance(result, dict) else getattr(result, "isError", False) or getattr(result, "is_error", False)
    return bool(flag) or "ended while the call was open" in str(result)


async def kill_and_resume(call, step):
    """A call that ends the server, and the first one that works again."""
    try:
        failed = is_error(await call(step["die"]))
    except Exception:
        failed = True
    last = None
    for _ in range(150):
        try:
            back = await call(step["echo"])
            if not is_error(back):
                return {"failed": failed, "back": plain(back)}
            last = RuntimeError(str(back))
        except Exception as e:
            last = e
        await asyncio.sleep(0.3)
    raise last


async def cancelled(call, step):
    """A call that is taken back after a second, and what became of it."""
    task = asyncio.ensure_future(call(step))
    await asyncio.sleep(1)
    task.cancel()
    failed = False
    try:
        await task
    except BaseException:
        failed = True
    await asyncio.sleep(0.5)
    return {"failed": failed, "then": plain(await call(step["then"]))}


async def until(check):
    for _ in range(50):
        if check():
            return
        await asyncio.sleep(0.1)


async def run_steps(ops):
    for step in job["steps"]:
        try:
            say(step["step"], got=plain(await asyncio.wait_for(ops[step["op"]](step), 60 if step["op"] == "kill" else 30)))
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            say(step["step"], error=failure(e))


def main(coroutine):
    try:
        asyncio.run(coroutine)
    except BaseException as e:
        say("connect", error=failure(e))
    sys.stdout.flush()
    os._exit(0)
