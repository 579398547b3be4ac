"""Have opencode summarize its newest session, which its command line does not offer: over the HTTP of its server.

``python -m bench.programs.opencode_compact OPENCODE PROVIDER MODEL``
"""

import re
import subprocess
import sys
from typing import Any

import httpx2

SECONDS = 120


def main(program: str, provider: str, model: str) -> None:
    """Run the server, ask for the summary, and end the server."""
    process = subprocess.Popen(
        [program, "serve", "--port", "0", "--hostname", "127.0.0.1"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                session = max(_ask(f"{found[0]}/session"), key=lambda each: each["time"]["updated"])["id"]
                _ask(f"{found[0]}/session/{session}/summarize", {"providerID": provider, "modelID": model})
                return
        raise RuntimeError("opencode did not print the address of its server")
    finally:
        process.terminate()
        process.wait(10)


def _ask(url: str, body: object = None) -> Any:
    answer = httpx2.request("GET" if body is None else "POST", url, json=body, timeout=SECONDS)
    answer.raise_for_status()
    return answer.json()


if __name__ == "__main__":
    main(*sys.argv[1:])
