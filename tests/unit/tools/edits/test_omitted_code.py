"""Lines that stand for omitted code: refused by each edit tool, and nothing else is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.edits.apply_patch import ApplyPatch
from isthmus.tools.edits.omitted_code import omitted_line
from isthmus.tools.edits.replace import Replace
from isthmus.tools.edits.write_file import WriteFile
from isthmus.tools.port.base import Tool
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import tool_context

pytestmark = pytest.mark.anyio

FORMS = (
    "# ... rest of the code ...",
    "# ... rest unchanged ...",
    "// ... existing code ...",
    "// ...existing code...",
    "// rest of the code remains unchanged",
    "/* ... rest of the file ... */",
    "<!-- ... rest of the page content ... -->",
    "{/* ... existing components ... */}",
    "-- ... remaining columns unchanged ...",
    "# ... (rest of the methods) ...",
    "# (rest of the file unchanged)",
    "# [rest of code unchanged]",
    "// ... keep existing imports ...",
    "// ... other methods ...",
    "# ... same as before ...",
    "# ... unchanged ...",
    "// unchanged code",
    "// code omitted for brevity",
    "# remaining code unchanged",
    "# The rest of the function stays the same",
    "(rest of code ...)",
    "(rest of methods ...)",
    "(unchanged code ...)",
    "... rest of the file ...",
    "... existing code ...",
    "[... rest of the code ...]",
    "; ... rest of the code ...",
    "% ... remaining sections ...",
    "# \u2026 rest of the class \u2026",
    "// \u2026 existing code \u2026",
    "# ... existing tests here ...",
    "# ... previous code here ...",
    "/* existing styles remain unchanged */",
    "// rest of implementation",
    "# rest of implementation...",
    "// ... (other cases unchanged) ...",
    "// ... the rest of your code ...",
    "// ... implementation remains the same ...",
    "# ... imports ...",
    "<!-- rest of the file unchanged -->",
    "// ... original code ...",
    '""" ... rest of the module ... """',
    "// existing code here",
    "# ... remaining entries ...",
    "* ... rest of the list ...",
)
OLD = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"
NOT_OMITTED = (
    "...",
    "    ...",
    "x = [...]",
    "def f(*args): ...",
    "{ ...value }",
    "return { ...state, ...items };",
    "const all = [...old, ...new];",
    "print('...')",
    "# The rest of the arguments is checked by the caller.",
    "// remaining is the number of bytes that are left",
    "Loading ...",
    "* configuration unchanged.",
    "The rest of the file is read in one go, since it is small.",
    "existing = find_existing(path)",
    "rest_of_file = data[10:]",
    "# Keep the old name for callers of earlier versions.",
    "for other in others:  # the other methods",
    "etc = Path('/etc')",
    "# previous",
    "# Original logic",
    "- see below",
)


@pytest.mark.parametrize("line", FORMS)
@pytest.mark.parametrize("indent", ["", "    ", "\t\t"])
def test_a_line_that_stands_for_others_is_found(line: str, indent: str) -> None:
    assert omitted_line(f"import os\n{indent}{line}\ndef two():\n    return 2\n", OLD) == line


@pytest.mark.parametrize("line", NOT_OMITTED)
def test_a_line_that_stands_for_itself_is_not_found(line: str) -> None:
    assert omitted_line(f"import os\n{line}\n", OLD) is None


@pytest.mark.parametrize("line", FORMS)
def test_one_that_was_there_or_that_replaces_nothing_is_written(line: str) -> None:
    assert omitted_line(f"import os\n{line}\n", f"{OLD}{line}\n") is None
    assert omitted_line(f"{OLD}{line}\n", OLD) is None
    assert omitted_line(f"{line}\n", "") is None


def calls(line: str) -> list[tuple[Tool, Mapping[str, Any]]]:
    patch = f"*** Begin Patch\n*** Update File: a.py\n@@\n-def one():\n-    return 1\n+{line}\n*** End Patch"
    about = {"file_path": "a.py", "instruction": "Change it"}
    return [
        (WriteFile(), {**about, "content": f"import os\n{line}\n"}),
        (Replace(), {**about, "old_string": "def one():\n    return 1\n", "new_string": f"{line}\n"}),
        (ApplyPatch(), {"patch": patch}),
    ]


@pytest.mark.parametrize("number", range(3), ids=["write_file", "replace", "apply_patch"])
async def test_each_edit_tool_refuses_it_and_changes_nothing(workspace: Path, number: int) -> None:
    path = workspace / "a.py"
    path.write_text(OLD, "utf-8")
    tool, arguments = calls("# ... rest of the code ...")[number]
    with pytest.raises(ToolFailure, match="stands for code that is left out") as refused:
        await tool.propose(arguments, tool_context(workspace))
    assert refused.value.category == "omitted_code"
    assert path.read_text("utf-8") == OLD
    tool, arguments = calls("# all of it")[number]
    assert await tool.propose(arguments, tool_context(workspace)) is not None
