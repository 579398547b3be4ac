"""How the endpoint of the benchmark of prices bills: figures of the providers' documents, one to one."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from bench.money.caches import PromptCache, RequestRefused, least_tokens, price_of
from bench.money.calls import calls_of, offered
from bench.money.differences import first_difference
from bench.money.endpoint import BilledEndpoint
from bench.money.prompt import BYTES_PER_TOKEN, Block, Prompt, read_prompt
from bench.money.script import FULL, LINE_BYTES, LINE_TOKENS, LINES, Edit, Read, line_of, session

from isthmus.models.port.base import Usage
from support.wire_server import WireRequest

SONNET = "claude-sonnet-5"
FIVE, HOUR = 300, 3_600


def prompt(*sizes: tuple[int, int] | int, model: str = SONNET, wire: str = "anthropic", **more: Any) -> Prompt:
    """Return a prompt of blocks with these sizes in tokens; a pair has the seconds of its mark, too."""
    blocks: list[Block] = []
    for place, size in enumerate(sizes):
        tokens, lifetime = size if isinstance(size, tuple) else (size, 0)
        letter = chr(97 + place % 26).encode()
        blocks.append(Block(f"block {place}", letter * tokens * BYTES_PER_TOKEN, lifetime, is_new=True))
    return Prompt(wire, model, tuple(blocks), **more)  # pyright: ignore[reportArgumentType]


def test_a_marked_prefix_is_written_and_then_read() -> None:
    # The example of the document: 188,086 tokens of a book, and 21 of a question behind the mark.
    book = prompt((188_086, FIVE), 21)
    cache = PromptCache()
    assert cache.count(book, 0) == Usage(188_107, cache_write=188_086)
    assert cache.count(book, 60) == Usage(188_107, cached=188_086)


def test_two_lifetimes_are_billed_by_their_places() -> None:
    # A: the highest hit; B: the last mark for an hour; C: the last mark. Read A, write B - A for an hour and C - B.
    cache = PromptCache()
    cache.count(prompt((2_000, HOUR)), 0)
    usage = cache.count(prompt((2_000, HOUR), (3_000, HOUR), (500, FIVE), 7), 10)
    assert usage == Usage(5_507, cached=2_000, cache_write=3_500, cache_write_1h=3_000)


def test_a_longer_lifetime_comes_first() -> None:
    with pytest.raises(RequestRefused, match="must not come after"):
        PromptCache().count(prompt((2_000, FIVE), (2_000, HOUR)), 0)


def test_five_marks_are_refused() -> None:
    with pytest.raises(RequestRefused, match="maximum of 4"):
        PromptCache().count(prompt(*[(2_000, FIVE)] * 5), 0)


@pytest.mark.parametrize(
    ("lifetime", "again", "read"),
    [(FIVE, (299,), 2_000), (FIVE, (301,), 0), (FIVE, (290, 580), 2_000), (HOUR, (3_599,), 2_000), (HOUR, (3_601,), 0)],
)
def test_each_use_renews_a_lifetime(lifetime: int, again: Sequence[int], read: int) -> None:
    cache = PromptCache()
    cache.count(prompt((2_000, lifetime)), 0)
    assert [cache.count(prompt((2_000, lifetime)), at).cached for at in again][-1] == read


@pytest.mark.parametrize(("blocks", "read"), [(19, 2_000), (20, 0)])
def test_a_mark_looks_back_over_twenty_blocks(blocks: int, read: int) -> None:
    cache = PromptCache()
    cache.count(prompt((2_000, FIVE)), 0)
    usage = cache.count(prompt(2_000, *[10] * (blocks - 1), (10, FIVE)), 10)
    assert usage.cached == read


def test_a_prefix_that_no_request_marked_is_not_read() -> None:
    cache = PromptCache()
    cache.count(prompt(2_000, (2_000, FIVE)), 0)
    assert cache.count(prompt((2_000, FIVE)), 10) == Usage(2_000, cache_write=2_000)


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-opus-5", 512),
        ("claude-opus-4-8", 1_024),
        (SONNET, 1_024),
        ("claude-sonnet-4-6", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-opus-4-6", 4_096),
        ("claude-haiku-4-5-20251001", 4_096),
        ("claude-3-5-haiku-20241022", 2_048),
    ],
)
def test_short_prefixes_are_not_written(model: str, least: int) -> None:
    assert least_tokens("anthropic", model) == least
    assert PromptCache().count(prompt((least - 1, FIVE), model=model), 0).cache_write == 0
    assert PromptCache().count(prompt((least, FIVE), model=model), 0).cache_write == least


@pytest.mark.parametrize(("same", "read"), [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (2_006, 1_920)])
def test_gpt_reads_from_1024_tokens_in_steps_of_128(same: int, read: int) -> None:
    # 2,006 tokens of which 1,920 are read: the example of OpenAI's document.
    cache = PromptCache()
    cache.count(prompt(same, 300, wire="chat", model="gpt-5.5"), 0)
    other = prompt(same, wire="chat", model="gpt-5.5")
    assert cache.count(other, 10) == Usage(same, cached=read)


@pytest.mark.parametrize(
    ("model", "retention", "after", "read"),
    [
        ("gpt-4.1", "", 599, 2_048),
        ("gpt-4.1", "", 601, 0),
        ("gpt-5.1", "24h", 80_000, 2_048),
        ("gpt-5.5", "", 80_000, 2_048),
        ("gpt-5.5", "", 87_000, 0),
    ],
)
def test_gpt_keeps_prefixes_for_ten_minutes_or_a_day(model: str, retention: str, after: int, read: int) -> None:
    cache = PromptCache()
    asked = prompt(2_100, wire="responses", model=model, retention=retention)
    cache.count(asked, 0)
    assert cache.count(asked, after).cached == read


def test_gpt_56_writes_the_end_of_the_newest_message() -> None:
    cache = PromptCache()
    ours = {"wire": "responses", "model": "gpt-5.6-sol"}
    assert cache.count(prompt(3_207, **ours), 0) == Usage(3_207, cache_write=3_207)
    assert cache.count(prompt(3_207, **ours), 10) == Usage(3_207, cached=3_207)
    assert cache.count(prompt(3_207, 100, **ours), 20) == Usage(3_307, cached=3_207, cache_write=100)
    # Without the message that was the newest, nothing is found: no step of 128 tokens is.
    assert cache.count(prompt(3_000, **ours), 30).cached == 0


def test_gpt_56_keeps_for_half_an_hour_and_by_key() -> None:
    cache = PromptCache()
    ours = {"wire": "responses", "model": "gpt-5.6-sol"}
    cache.count(prompt(3_000, key="a", **ours), 0)
    assert cache.count(prompt(3_000, key="b", **ours), 1_799).cached == 0
    assert cache.count(prompt(3_000, key="a", **ours), 1_799).cached == 3_000
    assert cache.count(prompt(3_000, key="a", **ours), 3_600).cached == 0


@pytest.mark.parametrize(
    ("model", "size", "read"),
    [
        ("gemini-2.5-flash", 1_024, 1_024),
        ("gemini-2.5-flash", 1_023, 0),
        ("gemini-2.5-pro", 4_095, 0),
        ("gemini-2.5-pro", 4_096, 4_096),
        ("gemini-3-flash-preview", 1_024, 1_024),
        ("gemini-3-pro-preview", 4_095, 0),
    ],
)
def test_gemini_reads_from_a_minimum_by_model(model: str, size: int, read: int) -> None:
    cache = PromptCache()
    cache.count(prompt(size, wire="gemini", model=model), 0)
    assert cache.count(prompt(size, wire="gemini", model=model), 10).cached == read


@pytest.mark.parametrize(
    ("wire", "model", "usage", "dollars"),
    [
        # Sonnet 5: 2 dollars a million; written 2.50 and 4, read 0.20, output 10.
        ("anthropic", SONNET, Usage(1_000_000, cache_write=1_000_000), "2.5"),
        ("anthropic", SONNET, Usage(1_000_000, cache_write=1_000_000, cache_write_1h=1_000_000), "4"),
        ("anthropic", SONNET, Usage(1_000_000, 100_000, cached=1_000_000), "1.2"),
        ("chat", "gpt-5.5", Usage(200_000, 1_000, cached=100_000), "0.58"),
        # Above 272,000 tokens of input all of a request costs more.
        ("chat", "gpt-5.5", Usage(300_000, cached=300_000), "0.3"),
        ("responses", "gpt-5.6-sol", Usage(200_000, cached=100_000, cache_write=100_000), "0.54"),
        ("gemini", "gemini-2.5-pro", Usage(200_000, cached=100_000), "0.1375"),
        ("gemini", "gemini-2.5-pro", Usage(300_000, cached=100_000), "0.525"),
    ],
)
def test_prices_are_those_of_the_table(wire: str, model: str, usage: Usage, dollars: str) -> None:
    assert price_of(prompt(1, wire=wire, model=model), usage) == Decimal(dollars)


def test_an_unknown_model_has_no_price() -> None:
    assert price_of(prompt(1, model="claude-unknown"), Usage(1_000)) is None


MARK = {"cache_control": {"type": "ephemeral"}}
BODIES: Mapping[str, Mapping[str, Any]] = {
    "anthropic": {
        "model": SONNET,
        "tools": [{"name": "Read", "input_schema": {"properties": {"file_path": {}}}}],
        "system": [{"type": "text", "text": "Be good.", **MARK}],
        "messages": [{"role": "user", "content": "Step 2: read"}],
    },
    "chat": {
        "model": "gpt-5.5",
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"properties": {"filePath": {}}}}}],
        "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Step 2: read"}],
    },
    "responses": {
        "model": "gpt-5.6-sol",
        "tools": [{"type": "function", "name": "read_file", "parameters": {"properties": {"file_path": {}}}}],
        "instructions": "Be good.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Step 2: read"}]}],
    },
    "gemini": {
        "tools": [
            {"functionDeclarations": [{"name": "read_file", "parametersJsonSchema": {"properties": {"path": {}}}}]}
        ],
        "systemInstruction": {"parts": [{"text": "Be good."}]},
        "contents": [{"role": "user", "parts": [{"text": "Step 2: read"}]}],
    },
}
PATHS = {
    "anthropic": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-flash-preview:streamGenerateContent",
}
each_wire = pytest.mark.parametrize("wire", list(BODIES))


@each_wire
def test_each_wire_gets_the_calls_of_a_step_and_its_bill(wire: str) -> None:
    endpoint = BilledEndpoint("/work")
    endpoint.begin(session(["talk", "read"])[1])
    body = {**BODIES[wire], "stream": True}
    answer = endpoint.answer(WireRequest("POST", PATHS[wire], "", {}, json.dumps(body).encode()))
    text = b"".join(piece for piece in answer.pieces if isinstance(piece, bytes)).decode()
    assert "/work" in text
    assert not endpoint.is_done()
    (bill,) = endpoint.bills
    assert bill.lines == 0
    assert bill.price is not None
    assert not endpoint.problems
    endpoint.answer(WireRequest("POST", PATHS[wire], "", {}, json.dumps(body).encode()))
    assert endpoint.is_done()
    assert endpoint.bills[1].usage.input == bill.usage.input


@each_wire
def test_a_request_without_tools_is_not_of_the_conversation(wire: str) -> None:
    endpoint = BilledEndpoint("/work")
    endpoint.begin(session(["talk", "read"])[1])
    body = {name: value for name, value in BODIES[wire].items() if name != "tools"} | {"stream": True}
    endpoint.answer(WireRequest("POST", PATHS[wire], "", {}, json.dumps(body).encode()))
    assert [bill.lines for bill in endpoint.bills] == [None]
    assert not endpoint.is_done()


@each_wire
def test_marks_and_images_do_not_count_by_their_bytes(wire: str) -> None:
    plain = read_prompt(wire, PATHS[wire], BODIES[wire])  # pyright: ignore[reportArgumentType]
    assert b"cache_control" not in b"".join(block.data for block in plain.blocks)
    if wire == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": "A" * 100_000}
        content = [{"type": "image", "source": source}]
        seen = read_prompt("anthropic", "", {**BODIES[wire], "messages": [{"role": "user", "content": content}]})
        assert 990 <= seen.size - plain.size <= 1_020


def test_a_header_for_accounts_is_not_in_the_prompt() -> None:
    header = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.20d; cc_entrypoint=sdk-cli;"}
    plain = read_prompt("anthropic", "", BODIES["anthropic"])
    assert (
        read_prompt("anthropic", "", {**BODIES["anthropic"], "system": [header, *BODIES["anthropic"]["system"]]})
        == plain
    )


def test_a_difference_is_shown_where_it_begins() -> None:
    before = Prompt("chat", "m", (Block("tools[0]", b"aaaa"), Block("messages[0]", b"the mode is plan now" * 10)))
    after = Prompt("chat", "m", (Block("tools[0]", b"aaaa"), Block("messages[0]", b"the mode is yolo now" * 10)))
    found = first_difference(3, before, after)
    assert found is not None
    assert (found.place, found.lost) == ("messages[0] byte 12", 47)
    assert found.old.startswith("the mode is plan")
    assert first_difference(3, before, before) is None


def test_a_session_reads_about_200_000_tokens() -> None:
    steps = session(FULL)
    reads = [action for step in steps for calls in step.calls for action in calls if isinstance(action, Read)]
    assert len(steps) == 40
    assert len({read.path for read in reads}) == len(reads)
    assert 190_000 <= len(reads) * LINES * LINE_TOKENS <= 210_000
    assert len(line_of(3, 7)) == LINE_BYTES - 1


def test_an_edit_becomes_the_call_that_a_client_has() -> None:
    schema: dict[str, Any] = {
        "properties": {"path": {}, "old_string": {}, "new_string": {}, "instruction": {}},
        "required": ["instruction"],
    }
    tools: list[Any] = [{"functionDeclarations": [{"name": "replace", "parameters": schema}]}]
    ((name, arguments),) = calls_of([Edit("a.py", "b", "c")], offered("gemini", {"tools": tools}), "/work")
    assert name == "replace"
    assert isinstance(arguments, Mapping)
    assert set(arguments) == {"path", "old_string", "new_string", "instruction"}
    custom = [{"type": "custom", "name": "apply_patch"}]
    ((_, patch),) = calls_of([Edit("a.py", "b", "c")], offered("responses", {"tools": custom, "input": []}), "/work")
    assert isinstance(patch, str)
    assert "-b\n+c" in patch
