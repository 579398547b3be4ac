"""Hooks in the hands of the real Gemini CLI and of Isthmus: both refuse, hide and add the same.

The same functions check the requests of both. One of the hooks is the example of Gemini CLI's own documentation,
unchanged, from the installed package.
"""

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from isthmus.encoding.json_shapes import is_object
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust
from support.gemini_wire import GeminiWire
from support.headless_gemini import RunHere, gemini_settings, run_gemini_cli
from support.isthmus_program import isthmus
from support.programs import node_package
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.timeout(300)

REFUSES = "input=$(cat); case $input in *forbidden*) echo 'not this one' >&2; exit 2;; esac; echo '{}'"
FAILS = "echo broken >&2; exit 1"
HIDES = (
    """case $(cat) in *"cat secret"*) echo '{"decision": "deny", "reason": "hidden by a hook"}';; *) echo '{}';; esac"""
)
ADDS = """echo '{"hookSpecificOutput": {"additionalContext": "by a hook"}}'"""
SEES = 'cat > "$GEMINI_PROJECT_DIR/seen.json"; echo "{}"'
FIELDS = {"session_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "tool_name", "tool_input"}


def documented_hook() -> str:
    """Return the script that blocks secrets, as Gemini CLI's documentation has it."""
    text = (node_package("@google/gemini-cli") / "bundle" / "docs" / "hooks" / "writing-hooks.md").read_text("utf-8")
    found = re.search(r"\*\*`\.gemini/hooks/block-secrets\.sh`:\*\*\n\n```bash\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def group(command: str, matcher: str) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}


def settings() -> dict[str, Any]:
    documented = "$GEMINI_PROJECT_DIR/.gemini/hooks/block-secrets.sh"
    before = [
        group(REFUSES, "run_shell_command"),
        group(FAILS, "run_shell_command"),
        group(documented, "write_file|replace"),
        group("exit 2", "no_such_tool"),
        group(SEES, "^write_file$"),
    ]
    after = [group(HIDES, "run_.*"), group(ADDS, "write_file")]
    return {"hooks": {"BeforeTool": before, "AfterTool": after}}


def shell(command: str) -> Reply:
    return Reply.of(Call("run_shell_command", {"command": command, "description": "d"}))


def write(path: Path, content: str) -> Reply:
    return Reply.of(Call("write_file", {"file_path": str(path), "content": content}))


def replies(folder: Path) -> list[Reply]:
    return [
        shell("touch forbidden"),
        shell("touch allowed"),
        shell("cat secret"),
        write(folder / "config", "password = 1"),
        write(folder / "plain", "nothing"),
        Reply.of(Say("done")),
    ]


@pytest.fixture
def folder(workspace: Path) -> Path:
    script = workspace / ".gemini" / "hooks" / "block-secrets.sh"
    script.parent.mkdir(parents=True)
    script.write_text(documented_hook(), "utf-8")
    script.chmod(0o755)
    (workspace / "secret").write_text("the text of the secret")
    state_trust(Path.home(), workspace, TrustRule.FOLDER)
    gemini_settings(settings())
    return workspace


def check(folder: Path, requests: list[Any]) -> dict[str, Any]:
    """Check what happened in both programs; return what the last hook saw."""
    assert sorted(path.name for path in folder.iterdir()) == [".gemini", "allowed", "plain", "secret", "seen.json"]
    responses = [
        json.dumps(part["functionResponse"]["response"])
        for content in requests[-1]["contents"]
        for part in content["parts"]
        if "functionResponse" in part
    ]
    assert "not this one" in responses[0]
    assert "hidden by a hook" in responses[2]
    assert "the text of the secret" not in "".join(responses)
    assert "Security Policy: Potential secret detected in content." in responses[3]
    assert "by a hook" in responses[4]
    seen: dict[str, Any] = json.loads((folder / "seen.json").read_text("utf-8"))
    assert set(seen) == FIELDS
    assert seen["tool_input"] == {"file_path": str(folder / "plain"), "content": "nothing"}
    return seen


@pytest.mark.comparison
def test_gemini_cli_refuses_hides_and_adds(folder: Path) -> None:
    done, requests = run_gemini_cli(folder, "--approval-mode", "yolo", "-p", "go", replies=replies(folder))
    assert done.returncode == 0, done.stderr
    check(folder, requests)


def test_isthmus_refuses_hides_and_adds_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GeminiWire(replies(folder)) as wire:
        monkeypatch.setenv("GEMINI_API_KEY", "key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
        # In a process of its own, whose warnings are on its standard error.
        done = isthmus("-p", "go", "--approval-mode", "yolo", folder=folder)
        requests = [request.json for request in wire.model_requests]
    assert done.returncode == 0, done.stderr
    seen = check(folder, requests)
    assert (seen["cwd"], seen["hook_event_name"], seen["tool_name"]) == (str(folder), "BeforeTool", "write_file")
    assert "failed: broken" in done.stderr


def refuse_prompts() -> None:
    refuses = group("case $(cat) in *password*) echo 'no secrets' >&2; exit 2;; esac; echo '{}'", "*")
    gemini_settings({"hooks": {"BeforeAgent": [refuses]}})


@pytest.mark.comparison
def test_gemini_cli_keeps_a_refused_prompt_from_the_model(workspace: Path) -> None:
    refuse_prompts()
    _, requests = run_gemini_cli(workspace, "-p", "the password is 123", replies=[])
    assert requests == []


def test_a_refused_prompt_is_kept_from_the_model(run_here: RunHere) -> None:
    refuse_prompts()
    status, _, errors, requests = run_here("-p", "the password is 123", replies=[])
    assert (status, requests) == (1, [])
    assert "A hook refused the prompt: no secrets" in errors


BEGUN = [Reply.of(Say("All done.")), Reply.of(Say("The tests pass."))]


def begin_and_go_on() -> None:
    begins = """echo '{"hookSpecificOutput": {"additionalContext": "the rota of today"}}'"""
    goes_on = """case $(cat | tr -d ' ') in
        *'"stop_hook_active":false'*) echo '{"decision": "deny", "reason": "run the tests first"}';;
        *) echo '{}';;
    esac"""
    gemini_settings({"hooks": {"SessionStart": [group(begins, "startup")], "AfterAgent": [group(goes_on, "*")]}})


def check_begun(requests: Sequence[Any]) -> None:
    assert len(requests) == 2
    assert "the rota of today" in json.dumps(requests[0]["contents"])
    assert "run the tests first" in json.dumps(requests[1]["contents"][-1])


@pytest.mark.comparison
def test_gemini_cli_begins_with_a_hooks_text_and_goes_on_for_another(workspace: Path) -> None:
    begin_and_go_on()
    _, requests = run_gemini_cli(workspace, "-p", "fix it", replies=BEGUN)
    check_begun(requests)


def test_a_session_begins_with_a_hooks_text_and_goes_on_for_another(run_here: RunHere) -> None:
    begin_and_go_on()
    _, output, errors, requests = run_here("-p", "fix it", replies=BEGUN)
    assert output == "The tests pass.\n", errors
    check_begun(requests)


AROUND_MODEL = """
import json, sys
given = json.load(sys.stdin)
open("seen.jsonl", "a").write(json.dumps(given) + "\\n")

def answer(text):
    return {"candidates": [{"content": {"role": "model", "parts": [text]}, "finishReason": "STOP"}]}

said = {}
messages = given["llm_request"]["messages"]
match given["hook_event_name"]:
    case "BeforeModel" if any(message["role"] == "model" for message in messages):
        own = {"llm_response": answer("By a hook.")}
        said = {"decision": "deny", "reason": "asked enough", "hookSpecificOutput": own}
    case "BeforeModel":
        for message in messages:
            message["content"] = message["content"].replace("xyzzy", "[hidden]")
        changed = {"messages": messages, "config": {"temperature": 0.25}}
        said = {"hookSpecificOutput": {"llm_request": changed}}
    case "BeforeToolSelection":
        chosen = {"mode": "ANY", "allowedFunctionNames": ["list_directory", "read_file"]}
        said = {"hookSpecificOutput": {"toolConfig": chosen}}
    case "AfterModel" if "bad" in given["llm_response"]["text"]:
        said = {"hookSpecificOutput": {"llm_response": answer(given["llm_response"]["text"].replace("bad", "good"))}}
print(json.dumps(said))
"""


def around_model(workspace: Path, program: str) -> None:
    """Configure one program for all events around model requests."""
    (workspace / "hook.py").write_text(program, "utf-8")
    one = [group(f"{shlex.quote(sys.executable)} -IS hook.py", "*")]
    gemini_settings({"hooks": {"BeforeModel": one, "BeforeToolSelection": one, "AfterModel": one}})


def shape(value: object, name: str = "") -> Any:
    """Return a JSON value with the types of its texts and numbers in place of them; parameters are left out."""
    if is_object(value):
        return {key: shape(each, key) for key, each in value.items()} if name != "config" else {}
    return [shape(each) for each in cast("list[object]", value)] if isinstance(value, list) else type(value).__name__


def said_around(workspace: Path) -> list[Reply]:
    return [Reply.of(Say("bad words"), Call("list_directory", {"dir_path": str(workspace)}))]


MESSAGE = {"content": "str", "role": "str"}
HOOK_INPUT = dict.fromkeys(("cwd", "hook_event_name", "session_id", "timestamp", "transcript_path"), "str")
ANSWERS: Any = [
    {"candidates": [{"content": {"parts": ["bad words"], "role": "model"}, "index": 0}], "text": "bad words"},
    {
        "candidates": [{"content": {"parts": [], "role": "model"}, "finishReason": "STOP", "index": 0}],
        "text": "",
        "usageMetadata": {"candidatesTokenCount": 5, "promptTokenCount": 10, "totalTokenCount": 15},
    },
]


def check_around(workspace: Path, requests: Sequence[Any]) -> Any:
    """Check what the model got and what the hook saw; return the request's choice of tools."""
    (request,) = requests  # a hook answered the second one
    assert "say [hidden]" in json.dumps(request["contents"])
    assert "xyzzy" not in json.dumps(request["contents"])
    assert request["generationConfig"]["temperature"] == 0.25
    seen = [json.loads(line) for line in (workspace / "seen.jsonl").read_text("utf-8").splitlines()]
    assert [one["hook_event_name"] for one in seen] == [
        "BeforeModel", "BeforeToolSelection", "AfterModel", "AfterModel", "BeforeModel"
    ]  # fmt: skip
    assert [one.pop("llm_response") for one in seen[2:4]] == ANSWERS
    assert {one["llm_request"]["model"] for one in seen} == {"gemini-2.5-flash"}
    assert shape(seen) == [
        {**HOOK_INPUT, "llm_request": {"config": {}, "messages": [MESSAGE] * number, "model": "str"}}
        for number in (1, 1, 1, 1, 2)
    ]
    return request["toolConfig"]["functionCallingConfig"]


@pytest.mark.comparison
def test_gemini_cli_changes_chooses_replaces_and_answers_around_the_model(workspace: Path) -> None:
    around_model(workspace, AROUND_MODEL)
    options = ("--approval-mode", "yolo", "-p", "say xyzzy")
    done, requests = run_gemini_cli(workspace, *options, replies=said_around(workspace))
    assert check_around(workspace, requests) == {
        "mode": "ANY", "allowedFunctionNames": ["list_directory", "read_file"]
    }  # fmt: skip
    assert (done.returncode, done.stdout.split("\n")) == (0, ["good words", "By a hook.", ""])
    assert "asked enough" in done.stderr


def test_hooks_change_choose_replace_and_answer_around_the_model(
    workspace: Path, run_here: RunHere, caplog: pytest.LogCaptureFixture
) -> None:
    around_model(workspace, AROUND_MODEL)
    options = ("-p", "say xyzzy", "--approval-mode", "yolo")
    status, output, errors, requests = run_here(*options, replies=said_around(workspace))
    assert check_around(workspace, requests) == {
        "mode": "ANY", "allowedFunctionNames": ["list_directory", "read_file"]
    }  # fmt: skip
    assert (status, output, "good words" in errors) == (0, "By a hook.\n", True)
    assert "asked enough" in caplog.text


def refuse_requests() -> None:
    refuses = group("case $(cat) in *xyzzy*) echo 'not today' >&2; exit 2;; esac; echo '{}'", "*")
    gemini_settings({"hooks": {"BeforeModel": [refuses]}})


@pytest.mark.comparison
def test_gemini_cli_keeps_back_a_request_that_a_hook_refuses(workspace: Path) -> None:
    refuse_requests()
    done, requests = run_gemini_cli(workspace, "-p", "say xyzzy", replies=[])
    assert requests == []
    assert "not today" in done.stderr


def test_a_request_that_a_hook_refuses_is_kept_back(run_here: RunHere) -> None:
    refuse_requests()
    status, _, errors, requests = run_here("-p", "say xyzzy", replies=[])
    assert (status, requests) == (1, [])
    assert "A hook refused the request to the model: not today" in errors
