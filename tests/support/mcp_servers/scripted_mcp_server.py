"""An MCP server on stdio that behaves as its first argument says: ``python -S scripted_mcp_server.py NAME ...``.

It has no SDK, which takes a second to import; other arguments are those of the behaviour. Servers of the SDK, and those
over HTTP, are in tests/support.
"""

import importlib
import sys

BEHAVIOURS = {
    "contents": "contents",
    "grows": "growing",
    "many-records": "many_records",
    "probes-its-sandbox": "sandbox_probe",
    "writes-frames": "written_frames",
}
"""Modules with a class ``Server``, by behaviour. Any other name is that of a flood or of a bad answer."""

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    module = BEHAVIOURS.get(name) or ("floods" if name.startswith("floods-") else "bad_answers")
    importlib.import_module(module).Server(name, *arguments).run()
