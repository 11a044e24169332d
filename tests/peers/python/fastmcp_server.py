# A server of the matrix on FastMCP 2, 3 and 4.
#   fastmcp_server.py stdio|http
import base64
import json
import sys

import fastmcp
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool
from mcp.shared.message import ServerMessageMetadata
from pydantic import TypeAdapter

try:
    from fastmcp.tools.tool import ToolResult
except ImportError:
    from fastmcp.tools import ToolResult
try:
    import mcp_types as types
except ImportError:
    from mcp import types

from common import listen, offer, read, run_tool

release = int(fastmcp.__version__.split(".")[0])
ASKS = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
content = TypeAdapter(list[types.ContentBlock]).validate_python
dump = lambda m: m.model_dump(by_alias=True, mode="json", exclude_none=True)


async def ask(ctx, asks, plain):
    if not plain and getattr(ctx, "_is_modern_protocol", lambda: False)():
        got = ctx.input_responses or {}
        if set(got) >= set(asks):
            return {key: dump(got[key]) for key in asks}
        return types.InputRequiredResult(input_requests={k: ASKS[r["method"]][0].model_validate(r) for k, r in asks.items()})
    answers = {}
    for key, request in asks.items():
        kind, result = ASKS[request["method"]]
        wanted = kind.model_validate(request)
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        answer = await ctx.session.send_request(
            wanted if release > 3 else types.ServerRequest(wanted), result, metadata=related)
        answers[key] = dump(answer)
    return answers


class Row(Tool):
    async def run(self, arguments):
        row = next(r for r in offer["tools"] if r["tool"]["name"] == self.name)
        ctx = get_context()
        if "result" in row:
            fixed = row["result"]
            if fixed.get("isError"):
                raise ToolError(fixed["content"][0]["text"])
            return ToolResult(content=content(fixed["content"]), structured_content=fixed.get("structuredContent"))
        if "asks" in row:
            answers = await ask(ctx, row["asks"], row.get("plain"))
            if not isinstance(answers, dict):
                return answers
            return ToolResult(content=content([{"type": "text", "text": json.dumps(answers)}]))

        async def log(level, data):
            await ctx.log(data, level=level)
        done = await run_tool(self.name, arguments, log, ctx.report_progress)
        return ToolResult(content=content([{"type": "text", "text": done}]))


mcp = FastMCP("peer", version="1.0.0")
for row in offer["tools"]:
    tool = row["tool"]
    if tool["name"] != "touch":
        mcp.add_tool(Row(name=tool["name"], description=tool["description"], parameters=tool["inputSchema"],
                         output_schema=tool.get("outputSchema")))


def giving(contents):
    def give():
        return contents["text"] if "text" in contents else base64.b64decode(contents["blob"])
    return give


for row in offer["resources"]:
    r = row["resource"]
    mcp.resource(r["uri"], name=r["name"], description=r["description"], mime_type=r["mimeType"])(giving(row["contents"]))


@mcp.resource(offer["template"]["uriTemplate"], name="Template", description="Data by id", mime_type="application/json")
def template(id: str) -> str:
    return read(f"test://template/{id}/data")["text"]


@mcp.prompt(description="No arguments")
def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


@mcp.prompt(description="Two arguments")
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


if sys.argv[1] == "stdio":
    mcp.run(transport="stdio", show_banner=False)
else:
    listen(mcp.http_app(path="/mcp"), "/mcp")
