"""The program with a model of OpenAI over its wire: it is offered ``apply_patch``, and its patches are applied."""

import os
from pathlib import Path

import pytest

from support.loaded_program import LoadedProgram
from support.openai_wire import OpenAIWire
from support.responses_wire import ResponsesWire
from support.scripted_wire import Call, Reply, Say

PATCH = (
    "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+zwei\n*** Add File: b/c.txt\n+neu\n"
    "*** Delete File: old.txt\n*** End Patch\n"
)


@pytest.mark.parametrize(("model", "is_offered"), [("openai:gpt-5.2", True), ("openai:qwen3-coder", False)])
def test_a_patch_of_three_files_is_applied(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, model: str, is_offered: bool, loaded_isthmus: LoadedProgram
) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (workspace / "old.txt").write_text("old\n", encoding="utf-8")
    look, patch = Call("read_file", {"file_path": "old.txt"}), Call("apply_patch", {"input": PATCH})
    with OpenAIWire([Reply.of(look), Reply.of(patch), Reply.of(Say("Patched."))]) as wire:
        monkeypatch.setitem(os.environ, "OPENAI_BASE_URL", wire.base_url)
        monkeypatch.setitem(os.environ, "OPENAI_API_KEY", "none-is-needed")
        done = loaded_isthmus.run("-p", "patch it", "-m", model, "--approval-mode", "auto_edit", folder=workspace)
    assert (done.returncode, done.stdout.strip()) == (0, "Patched."), done.stderr
    assert (workspace / "a.txt").read_text(encoding="utf-8") == "one\nzwei\n"
    assert (workspace / "b" / "c.txt").read_text(encoding="utf-8") == "neu\n"
    assert not (workspace / "old.txt").exists()
    offered = [tool["function"]["name"] for tool in wire.model_requests[0].json["tools"]]
    assert set(offered) & {"apply_patch", "replace", "write_file"} == (
        {"apply_patch"} if is_offered else {"replace", "write_file"}
    )
    results = [message for message in wire.model_requests[2].json["messages"] if message["role"] == "tool"][1:]
    assert [result["content"].partition(".")[0].split()[0] for result in results] == ["Modified", "Created", "Deleted"]


def test_a_raw_patch_moves_a_file_over_openais_own_api(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, loaded_isthmus: LoadedProgram
) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    move = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: sub/b.txt\n@@\n one\n-two\n+zwei\n*** End Patch\n"
    new = "*** Begin Patch\n*** Add File: c.txt\n+neu\n*** End Patch"
    shell = Call("run_shell_command", {"command": f"apply_patch <<'EOF'\n{new}\nEOF"})
    replies = [Reply.of(Call("apply_patch", move)), Reply.of(shell), Reply.of(Say("Moved."))]
    with ResponsesWire(replies) as wire:
        monkeypatch.setitem(os.environ, "OPENAI_BASE_URL", wire.base_url)
        monkeypatch.setitem(os.environ, "OPENAI_API_KEY", "none-is-needed")
        arguments = ("-p", "move it", "-m", "responses:gpt-5.2", "--approval-mode", "auto_edit")
        done = loaded_isthmus.run(*arguments, folder=workspace)
    assert (done.returncode, done.stdout.strip()) == (0, "Moved."), done.stderr
    assert sorted(path.name for path in workspace.iterdir()) == ["c.txt", "sub"]
    assert (workspace / "sub" / "b.txt").read_text(encoding="utf-8") == "one\nzwei\n"
    assert (workspace / "c.txt").read_text(encoding="utf-8") == "neu\n"
    (tool,) = [tool for tool in wire.model_requests[0].json["tools"] if tool["name"] == "apply_patch"]
    assert (tool["type"], tool["format"]["syntax"]) == ("custom", "lark")
    items = [item for item in wire.model_requests[-1].json["input"] if item["type"].startswith("custom_tool_call")]
    calls = [item["input"] for item in items if item["type"] == "custom_tool_call"]
    assert [call.split("\n")[1] for call in calls] == ["*** Update File: a.txt"] * 2 + ["*** Add File: c.txt"]
    told = [item["output"].split()[0] for item in items if item["type"] == "custom_tool_call_output"]
    assert told == ["Created", "Deleted", "Created"]
