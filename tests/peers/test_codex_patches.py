"""The program with a model of OpenAI over its wire: it is offered ``apply_patch``, and its patches are applied."""

import os
from pathlib import Path

import pytest

from support.loaded_program import LoadedProgram
from support.openai_wire import OpenAIWire
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
