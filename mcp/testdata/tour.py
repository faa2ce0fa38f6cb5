"""Makes the tour of tour.json through every profile of basalt-mcp with a client of other people.

    tour.py python BASALT_MCP               the Python client of the package mcp
    tour.py inspector BASALT_MCP INSPECTOR  the command line of the official Inspector
"""

import asyncio
import json
import pathlib
import subprocess
import sys
import tempfile

TOUR = json.loads((pathlib.Path(__file__).parent / "tour.json").read_text())


def check(client, profile, listed, results):
    """Each tool is listed and was called, and each answer has what it must."""
    calls = TOUR[profile]
    assert sorted(listed) == sorted(name for name, _, _ in calls), (profile, listed)
    for (name, _, want), got in zip(calls, results, strict=True):
        assert want in got, f"{client}, {profile}: {name} gives {got}, without {want!r}"
    print(f"test-mcp: {client} lists and calls the {len(listed)} tools of the profile {profile}")


async def python_client(server, database, profile):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = StdioServerParameters(command=server, args=["--db", database, "--profile", profile])
    async with stdio_client(command) as streams, ClientSession(*streams) as session:
        await session.initialize()
        listed = [tool.name for tool in (await session.list_tools()).tools]
        results = []
        for name, arguments, _ in TOUR[profile]:
            result = await session.call_tool(name, arguments)
            results.append("".join(content.text for content in result.content))
    check("the Python client", profile, listed, results)


def inspector(server, database, profile, program):
    def run(*arguments):
        command = [program, "--cli", server, "--db", database, "--profile", profile, *arguments]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    listed = [tool["name"] for tool in run("--method", "tools/list")["tools"]]
    results = []
    for name, arguments, _ in TOUR[profile]:
        result = run("--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments))
        results.append("".join(content["text"] for content in result["content"]))
    check("the Inspector", profile, listed, results)


def main():
    client, server, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for profile in TOUR:
            if client == "python":
                asyncio.run(python_client(server, folder + "/m", profile))
            else:
                inspector(server, folder + "/m", profile, *rest)


main()
