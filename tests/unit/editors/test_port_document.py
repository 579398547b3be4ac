"""The document docs/reference/editor-port.md matches the code: its example, its methods, its limits."""

import re
from pathlib import Path

from isthmus.editors.plugin import connection as json_rpc_connection
from isthmus.editors.plugin import editor as stdio
from isthmus.editors.plugin import lsp_diagnostics
from isthmus.editors.plugin import session as plugin_session
from isthmus.editors.plugin import wire as editor_wire
from isthmus.editors.plugin.disk_text import MAXIMUM_READ_BYTES
from isthmus.editors.plugin.limits import PluginLimits
from isthmus.encoding.codec import MAXIMUM_DEPTH
from isthmus.ide.editor import Capability
from isthmus.rpc import lsp

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "reference" / "editor-port.md").read_text(encoding="utf-8")
METHOD = r"(?:\$|companion|editor|textDocument|window|workspace)/[A-Za-z]+"
LIFE = {"initialize", "initialized", "shutdown", "exit"}
MIB = 1024 * 1024


def test_the_example_in_the_document_is_the_program_that_tests_run() -> None:
    program = (ROOT / "examples" / "editors" / "minimal_editor.py").read_text(encoding="utf-8")
    assert f"```python\n{program}```" in DOCUMENT


def test_every_method_is_documented_and_every_documented_one_is_there() -> None:
    sources = [stdio, plugin_session, json_rpc_connection]
    code = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in sources)
    spoken = set(re.findall(rf'"({METHOD})"', code))
    documented = set(re.findall(rf"`({METHOD})[` ]", DOCUMENT))
    assert documented == spoken
    for method in LIFE:
        assert f"`{method}`" in DOCUMENT
        assert f'"{method}"' in code


def test_every_capability_is_documented() -> None:
    table = DOCUMENT.partition("| capability |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == {str(name) for name in Capability}


def test_the_deadlines_and_limits_are_those_of_the_code() -> None:
    table = DOCUMENT.partition("## Deadlines and limits")[2].partition("## Versions")[0]
    plugin = PluginLimits()
    limits = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", table, flags=re.MULTILINE))
    assert limits["`initialize`, `initialized`"] == f"{plugin.start_seconds:g} s"
    assert limits["an answer to `editor/openFiles`"] == f"{plugin.snapshot_seconds:g} s"
    assert f"within {plugin.late_snapshot_seconds:g} s" in table
    assert limits["an answer to diagnostics requests"] == f"{plugin.snapshot_seconds:g} s"
    assert limits["an answer to `editor/reload`"] == f"{plugin.snapshot_seconds:g} s"
    assert limits["`editor/openDiff`"] == limits["any other answer"] == f"{plugin.command_seconds:g} s"
    assert limits["`window/showMessageRequest`"] == f"{plugin.confirm_seconds / 3600:g} h"
    assert limits["`editor/executeCode`"] == f"{plugin.execute_seconds / 3600:g} h"
    assert limits["`editor/callTool`"] == f"{plugin.tool_seconds:g} s"
    assert limits["header of a frame"] == f"{lsp.MAXIMUM_HEADER_BYTES / 1024:g} KiB"
    assert limits["body of a frame"] == f"{lsp.MAXIMUM_BODY_BYTES / MIB:g} MiB, both directions"
    assert limits["frames that are not JSON-RPC"] == str(lsp.MAXIMUM_MALFORMED)
    unread = f"{plugin.unread_bytes / MIB:g} MiB"
    assert limits["unread output, when the plugin does not read"] == unread
    counts = f"{lsp_diagnostics.MAXIMUM_FILES} files, {lsp_diagnostics.MAXIMUM_DIAGNOSTICS} diagnostics a file"
    assert limits["open files, pushed diagnostics"] == counts
    assert limits["nesting of JSON"] == f"{MAXIMUM_DEPTH} levels"
    assert f"on disk, up to {MAXIMUM_READ_BYTES / MIB:g} MiB" in DOCUMENT
    assert f"`protocolVersion` is {editor_wire.PROTOCOL_VERSION}." in DOCUMENT
