import json
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import tool_context


def test_the_tools_have_gemini_clis_names_and_always_the_same_order() -> None:
    assert list(builtin_tools().tools) == [
        "list_directory",
        "read_file",
        "grep_search",
        "glob",
        "replace",
        "write_file",
        "notebook_edit",
        "run_shell_command",
        "read_many_files",
        "write_todos",
        "ask_user",
        "web_fetch",
        "google_web_search",
        "apply_patch",
    ]


def test_only_edits_and_commands_have_an_effect() -> None:
    kinds = {name: tool.kind for name, tool in builtin_tools().tools.items() if tool.kind is not ToolKind.READ}
    assert kinds == {
        "replace": ToolKind.EDIT,
        "write_file": ToolKind.EDIT,
        "notebook_edit": ToolKind.EDIT,
        "run_shell_command": ToolKind.EXECUTE,
        "ask_user": ToolKind.OTHER,
        "web_fetch": ToolKind.OTHER,
        "apply_patch": ToolKind.EDIT,
    }


def test_every_schema_is_plain_json_with_descriptions() -> None:
    for tool in builtin_tools().tools.values():
        schema = json.loads(json.dumps(tool.parameters))
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(field["description"] for field in schema["properties"].values())
        assert len(tool.description) > 60


@pytest.mark.anyio
@pytest.mark.parametrize("name", list(builtin_tools().tools))
async def test_a_call_without_arguments_is_refused_by_name(workspace: Path, name: str) -> None:
    tool = builtin_tools().tools[name]
    with pytest.raises(ToolFailure, match=f"{name}: {tool.parameters['required'][0]}: expected .*, received nothing"):
        await tool.propose({}, tool_context(workspace))


@pytest.mark.slow
def test_importing_the_tools_loads_nothing_heavy() -> None:
    code = (
        "import sys, isthmus.tools.builtin, isthmus.agent.approval.shell_command;"
        "isthmus.tools.builtin.builtin_tools();"
        "heavy = {'psutil', 'tree_sitter', 'rich', 'pydantic', 'httpx2'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
