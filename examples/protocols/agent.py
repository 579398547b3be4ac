"""An agent of the JSON lines protocol in 30 lines: it adds a line to a file, if the user accepts that.

Run it:      python examples/protocols/agent.py FILE   (while a companion serves the protocol)
"""

import json
import os
import socket
import sys
from pathlib import Path

data = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share"))
found = max((data / "isthmus" / "json-lines").glob("*.json"), key=lambda path: path.stat().st_mtime)
token = json.loads(found.read_text("utf-8"))["authToken"]
path = Path(sys.argv[1]).resolve()
proposed = path.read_text("utf-8") + "A line of an agent\n"

with socket.create_connection(("127.0.0.1", int(found.stem))) as connection, connection.makefile("rw") as lines:
    for message in ({"token": token, "agent": "Lines"}, {"openDiff": {"path": str(path), "text": proposed}}):
        lines.write(json.dumps(message) + "\n")
    lines.flush()
    for line in lines:
        match json.loads(line):
            case {"opened": _}:
                print("proposed", flush=True)
            case {"accepted": {"text": text}}:
                path.write_text(text, "utf-8")
                print("accepted, and written")
                break
            case {"rejected": _} | {"closed": _} | {"error": _} as ended:
                sys.exit(str(ended))
            case _:
                pass
