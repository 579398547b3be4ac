"""A program that plays an agent CLI: it proposes one edit through the companion, waits for the answer and prints it.

Run as ``python agent_program.py URL TOKEN FILE NEW_CONTENT [COMMAND...]``; with a command, that is run below the agent
after the edit was proposed, and its exit code and error output are printed instead.
"""

import http.client
import json
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit


def main() -> None:
    """Propose the edit, then wait for the decision or run the command."""
    url, token, path, content, *command = sys.argv[1:]
    address = urlsplit(url).netloc
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "text/event-stream"}
    connection = http.client.HTTPConnection(address, timeout=30)

    def post(method: str, params: dict[str, Any]) -> http.client.HTTPResponse:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/mcp", body, headers)
        return connection.getresponse()

    info = {"name": "an agent", "version": "1"}
    answer = post("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
    headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
    answer.read()
    stream = http.client.HTTPConnection(address, timeout=30)
    stream.request("GET", "/mcp", headers=headers)
    events = stream.getresponse()
    post("tools/call", {"name": "openDiff", "arguments": {"filePath": path, "newContent": content}}).read()
    print("proposed", flush=True)
    if command:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
        print(json.dumps({"code": done.returncode, "error": done.stderr}), flush=True)
        return
    for line in events:
        if line.startswith(b"data: ") and (message := json.loads(line[6:]))["method"] != "ide/contextUpdate":
            print(json.dumps(message), flush=True)
            return


if __name__ == "__main__":
    main()
