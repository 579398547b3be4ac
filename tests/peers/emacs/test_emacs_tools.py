"""Tools that the user defines in a real Emacs, called through the real companion as Claude Code calls them."""

from pathlib import Path

import pytest

from support.claude_cli import CallError, claude_cli
from support.emacs import lisp_string, running_emacs
from support.programs import require

pytestmark = pytest.mark.anyio

_TOOLS = """
(isthmus-define-tool "count_words" "Count words in the file with the focus."
                     '(("word" "string" "What to count.") ("ignore_case" "boolean" "Whether case is ignored." t))
                     (lambda (word ignore-case)
                       (let ((case-fold-search ignore-case))
                         (list (buffer-name) (count-matches (regexp-quote word) (point-min) (point-max))))))
(isthmus-define-tool "version" "Say which Emacs this is." nil (lambda () (format "Emacs ü %s" emacs-major-version)))
(isthmus-define-tool "fail" "Fail." nil (lambda () (error "Not today")))
(isthmus-define-tool "ask" "Ask the user." nil (lambda () (y-or-n-p "May I? ")))
"""


async def test_agents_call_functions_of_the_user_in_emacs(workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("One one two\n", encoding="utf-8")
    program = lisp_string(str(require("isthmus")))
    start = f"{_TOOLS} (setq isthmus-program {program}) (isthmus-mode 1) (find-file {lisp_string(str(path))})"
    async with running_emacs(workspace, start) as running:
        await running.shows("agents can find this Emacs")
        async with claude_cli(workspace) as cli:
            tools = {tool["name"]: tool for tool in cli.tools}
            assert {"count_words", "version", "fail", "ask"} <= tools.keys()
            assert tools["count_words"]["description"] == "Count words in the file with the focus."
            assert tools["count_words"]["inputSchema"] == {
                "type": "object",
                "properties": {
                    "word": {"type": "string", "description": "What to count."},
                    "ignore_case": {"type": "boolean", "description": "Whether case is ignored."},
                },
                "required": ["word"],
                "additionalProperties": False,
            }
            assert await cli.text("count_words", {"word": "one"}) == '("a.txt" 1)'
            assert await cli.text("count_words", {"word": "one", "ignore_case": True}) == '("a.txt" 2)'
            assert (await cli.text("version")).startswith("Emacs ü ")
            for name, arguments, problem in (
                ("count_words", {"word": 7}, "count_words: 7 is not of type 'string'"),
                ("count_words", {}, "count_words: 'word' is a required property"),
                ("fail", {}, "fail: Emacs: Not today"),
                ("ask", {}, "Emacs would have to ask the user something first"),
            ):
                with pytest.raises(CallError, match=problem):
                    await cli.call(name, arguments)
        assert await running.evaluate("(minibuffer-depth)") == 0
        with pytest.raises(RuntimeError, match="the name of a tool has 1 to 64 letters, digits"):
            await running.evaluate('(isthmus-define-tool "two words" "" nil #\'ignore)')
