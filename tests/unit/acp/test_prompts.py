"""Prompts of clients, given as they come over the wire: the message to the agent, and the commands in them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.acp.front.prompts import MAXIMUM_BLOCKS, ReadPrompt, available_commands, command_of, read_prompt
from isthmus.acp.v1.sessions import PromptRequest
from isthmus.acp.v1.updates import CommandsUpdate
from isthmus.development_tool import SlashCommand, SlashCommandArgument
from isthmus.encoding.codec import from_json, to_camel_json
from isthmus.events import ArtifactPart
from isthmus.rpc.messages import RpcError
from support import acp_schema

TREE = (
    SlashCommand(
        "memory",
        "Memory",
        (SlashCommandArgument("subcommand", "What to do", is_required=True),),
        (
            SlashCommand("add", "Remember a fact", (SlashCommandArgument("fact", "The fact", is_required=True),)),
            SlashCommand("show", "Show it"),
        ),
    ),
    SlashCommand("model", "Choose a model", (SlashCommandArgument("name", "Its name"),)),
    SlashCommand("about", ""),
)


def read(*blocks: dict[str, Any]) -> ReadPrompt:
    prompt = {"sessionId": "s", "prompt": list(blocks)}
    return read_prompt(from_json(PromptRequest, prompt).prompt, "/w")


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def link(uri: str) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": "x"}


def test_texts_are_joined_without_anything_between_them() -> None:
    assert read(text("Fix "), text("it.\n"), text("Now.")) == ReadPrompt("Fix it.\nNow.")


@pytest.mark.parametrize(
    ("uri", "reference"),
    [
        ("file:///w/src/a.py", "@src/a.py"),
        ("file:///w/my%20file.txt", "@my\\ file.txt"),
        ("file:///w", "@."),
        ("file:///other/b.py", "@/other/b.py"),
        ("file:///w2/b.py", "@/w2/b.py"),
        ("file:///w/../etc/passwd", "@/w/../etc/passwd"),
        ("/w/c.py", "@c.py"),
        ("d.py", "@d.py"),
        ("https://example.org/a b", "@https://example.org/a\\ b"),
        ("server:notes://1", "@server:notes://1"),
    ],
)
def test_a_link_is_a_reference_relative_to_the_workspace(uri: str, reference: str) -> None:
    assert read(link(uri)).text == reference


@pytest.mark.parametrize("uri", ["http://[::1", "file://[/w/a.py", "//[x"])
def test_a_link_that_is_not_a_uri_stays_as_it_is(uri: str) -> None:
    assert read(link(uri)).text == f"@{uri}"
    assert uri in read({"type": "resource", "resource": {"uri": uri, "text": "x"}}).text
    assert read({"type": "resource", "resource": {"uri": uri, "blob": "eA=="}}).parts[-1].filename == "file"


def test_a_reference_stands_apart_from_the_words_around_it() -> None:
    assert read(text("Compare"), link("file:///w/a"), link("file:///w/b"), text("please")).text == (
        "Compare @a @b please"
    )
    assert read(text("See "), link("file:///w/a"), text("\nnow")).text == "See @a\nnow"


def test_an_embedded_text_is_quoted_with_its_place() -> None:
    resource = {"uri": "file:///w/a.py", "text": "x = '```'\n", "mimeType": "text/x-python"}
    assert read(text("Explain"), {"type": "resource", "resource": resource}).text == (
        "Explain\n\nContent of a.py:\n````\nx = '```'\n````\n"
    )


def test_images_sounds_and_files_are_parts_beside_the_text() -> None:
    prompt = read(
        text("Look"),
        {"type": "image", "data": "aW1n", "mimeType": "image/png", "uri": None},
        {"type": "audio", "data": "c25k", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///w/a%20b.pdf", "blob": "cGRm", "mimeType": "application/pdf"}},
        {"type": "resource", "resource": {"uri": "x:", "blob": "Ymlu"}},
    )
    assert prompt == ReadPrompt(
        "Look",
        (
            ArtifactPart(text="Look"),
            ArtifactPart(raw="aW1n", media_type="image/png"),
            ArtifactPart(raw="c25k", media_type="audio/wav"),
            ArtifactPart(raw="cGRm", media_type="application/pdf", filename="a b.pdf"),
            ArtifactPart(raw="Ymlu", filename="file"),
        ),
    )


def test_an_image_alone_has_a_text_of_ours() -> None:
    prompt = read({"type": "image", "data": "aW1n", "mimeType": "image/png"})
    assert prompt.text == "See the attached file."
    assert [part.text for part in prompt.parts] == ["See the attached file.", None]


@pytest.mark.parametrize("blocks", [[], [text("")], [text(" \n")]])
def test_a_prompt_without_content_is_refused(blocks: list[dict[str, Any]]) -> None:
    with pytest.raises(RpcError, match="prompt: expected at least one block with content") as caught:
        read(*blocks)
    assert caught.value.code == -32602


def test_a_block_of_an_unknown_type_is_refused_by_its_place() -> None:
    with pytest.raises(RpcError, match=r"prompt\[1\]\.type: expected text, image, .* received 'video'") as caught:
        read(text("a"), {"type": "video", "url": "x"})
    assert caught.value.code == -32602


def test_a_resource_without_content_is_refused_by_its_place() -> None:
    with pytest.raises(RpcError, match=r"prompt\[1\]\.resource: expected text or blob, received neither") as caught:
        read(text("a"), {"type": "resource", "resource": {"uri": "file:///w/a.py"}})
    assert caught.value.code == -32602


def test_a_prompt_of_too_many_blocks_is_refused() -> None:
    with pytest.raises(RpcError, match="expected at most 1000 blocks, received 1001"):
        read(*[text("a")] * (MAXIMUM_BLOCKS + 1))


@given(st.text(), st.text())
def test_no_uri_and_no_text_is_too_strange(uri: str, content: str) -> None:
    prompt = read(text("See"), link(uri), {"type": "resource", "resource": {"uri": uri, "text": content}})
    assert content.removesuffix("\n") in prompt.text
    command_of(prompt, TREE)
    command_of(ReadPrompt("/" + content), TREE)


@pytest.mark.parametrize(
    ("line", "path", "args"),
    [
        ("/about", ("about",), ""),
        ("/memory add a fact", ("memory", "add"), "a fact"),
        ("/memory:add a fact", ("memory", "add"), "a fact"),
        ("  /model x\n", ("model",), "x"),
    ],
)
def test_a_command_is_found_by_spaces_and_by_colons(line: str, path: tuple[str, ...], args: str) -> None:
    found = command_of(read(text(line)), TREE)
    assert found is not None
    assert (found.path, found.args) == (path, args)


@pytest.mark.parametrize("line", ["about", "/etc/hosts is wrong", "/nothing", "/ about", "see /about", "//about"])
def test_other_texts_are_not_commands(line: str) -> None:
    assert command_of(read(text(line)), TREE) is None


def test_a_prompt_with_an_image_is_not_a_command() -> None:
    assert command_of(read(text("/about"), {"type": "image", "data": "", "mimeType": "image/png"}), TREE) is None


def test_commands_are_listed_flat_without_those_that_only_group_others() -> None:
    update = to_camel_json(CommandsUpdate(available_commands(TREE)))
    acp_schema.check_update(update)
    assert update == {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            {"name": "memory:add", "description": "Remember a fact", "input": {"hint": "fact"}},
            {"name": "memory:show", "description": "Show it"},
            {"name": "model", "description": "Choose a model", "input": {"hint": "[name]"}},
            {"name": "about", "description": "about"},
        ],
    }
