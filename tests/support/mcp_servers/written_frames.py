"""``writes-frames FILE``: a server that writes the content of a file before it answers a call.

``@ID@`` in the file is replaced by the id of the call.
"""

import json
from pathlib import Path
from typing import Any

from stdio_server import StdioServer, raw, reply, text


class Server(StdioServer):
    def call(self, request: Any) -> None:
        raw(Path(self.arguments[0]).read_bytes().replace(b"@ID@", json.dumps(request["id"]).encode()))
        reply(request, text("fine"))

    def receive_other(self, method: str, message: Any) -> None:
        """Answer nothing else."""
