import base64
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.result import BinaryPart, LinkPart, McpResult, Rendered, TextPart, parts_of, render

IMAGE = {"type": "image", "data": base64.b64encode(b"\x89PNG" + bytes(3000)).decode(), "mimeType": "image/png"}


def rendered(folder: Path, *blocks: dict[str, Any], **more: Any) -> Rendered:
    return render(McpResult(parts_of(list(blocks)), **more), folder, "call/1")


@pytest.mark.requirement("MCP-142", "MCP-143", "MCP-145", "MCP-148")
def test_all_types_of_content_are_taken_apart_in_their_order() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x://1", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "x://2", "blob": "AAEC", "mimeType": "application/pdf"}},
        {"type": "resource_link", "uri": "x://3", "name": "three", "description": "d", "mimeType": "text/plain"},
    ]
    assert parts_of(blocks) == (
        TextPart("a"),
        BinaryPart("audio", "audio/wav", b"\x00\x01\x02"),
        TextPart("inside", "x://1"),
        BinaryPart("resource", "application/pdf", b"\x00\x01\x02", "x://2"),
        LinkPart("x://3", "three", "d", "text/plain"),
    )


@pytest.mark.requirement("MCP-110", "MCP-111", "MCP-112", "MCP-123")
def test_the_model_gets_the_text_and_the_person_json_in_a_code_block(tmp_path: Path) -> None:
    assert rendered(tmp_path, {"type": "text", "text": '{"a": 1}'}) == Rendered('{"a": 1}', '```json\n{"a": 1}\n```')
    assert rendered(tmp_path, {"type": "text", "text": "[not json"}) == Rendered("[not json", "[not json")


def test_text_and_image_are_told_apart_and_the_image_is_kept(tmp_path: Path) -> None:
    first, last = {"type": "text", "text": "one\ntwo"}, {"type": "text", "text": "three"}
    found = rendered(tmp_path, first, IMAGE, last)
    assert found.for_person.startswith("text (3 lines) + image/png (3 KB)\n")
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("call_1-")
    assert file.stat().st_mode & 0o777 == 0o600
    assert found.for_model == f"one\ntwo\n[image image/png, 3 KB; kept in {file}]\nthree"


def test_structured_content_counts_where_there_is_no_text(tmp_path: Path) -> None:
    assert rendered(tmp_path, structured={"a": 1}).for_model == '{\n  "a": 1\n}'
    assert rendered(tmp_path, {"type": "text", "text": "t"}, structured={"a": 1}).for_model == "t"
    assert rendered(tmp_path).for_model == "(no output)"


def test_data_that_is_no_base64_is_said(tmp_path: Path) -> None:
    found = rendered(tmp_path, {"type": "image", "data": "A", "mimeType": "image/png"})
    assert found.for_model == "[image image/png: its data is not base64]"


def test_a_folder_that_cannot_be_written_is_said_and_the_text_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = rendered(tmp_path / "file", IMAGE, {"type": "text", "text": "x"})
    assert "not kept: " in found.for_model
    assert found.for_model.endswith("\nx")
