"""The gate on delays in tests: each fixed one is found in any spelling, unless a comment says why the time matters."""

from pathlib import Path

import pytest

from check_delays import faults, main

IMPORTS = "import asyncio, time\nimport anyio as loops\nfrom trio import sleep as pause\nfrom asyncio import sleep\n"
LINE = IMPORTS.count("\n") + 1


@pytest.mark.parametrize(
    "call",
    [
        "time.sleep(0.1)",
        "asyncio.sleep(SECONDS)",
        "loops.sleep(chance.uniform(0, 1))",
        "pause(1)",
        "sleep(1)",
        "asyncio.sleep(0 if ends else 1000)",
        "page.wait_for_timeout(500)",
        'neovim.lua("vim.wait(50)")',
        'neovim.lua("vim.wait(...)", 50)',
    ],
)
def test_a_fixed_delay_is_a_fault_in_any_spelling(call: str) -> None:
    assert [line for line, _ in faults(f"{IMPORTS}{call}\n")] == [LINE]


@pytest.mark.parametrize(
    "call", ["asyncio.sleep(0)", "sleep(0, '[]')", "given.sleep(1)", "eventually(is_done, 30)", "'time.sleep(600)'"]
)
def test_turns_of_the_loop_and_programs_in_text_are_no_delays(call: str) -> None:
    assert not list(faults(f"{IMPORTS}{call}\n"))


def test_a_name_that_is_not_imported_is_no_delay() -> None:
    assert not list(faults("async def pause(sleep):\n    await sleep(1)\n"))


@pytest.mark.parametrize(
    "text",
    [
        "time.sleep(1)  # delay: the server hangs until it is killed",
        "# delay: the server hangs until it is killed\ntime.sleep(1)",
        "time.sleep(\n    1,  # delay: the server hangs until it is killed\n)",
    ],
)
def test_a_comment_with_a_reason_allows_a_delay(text: str) -> None:
    assert not list(faults(f"{IMPORTS}{text}\n"))


@pytest.mark.parametrize("comment", ["# delay:", "# delay: needed", "# the server hangs until it is killed"])
def test_a_comment_without_a_reason_does_not_allow_a_delay(comment: str) -> None:
    assert len(list(faults(f"{IMPORTS}time.sleep(1)  {comment}\n"))) == 1


def test_a_reason_counts_for_the_next_line_alone() -> None:
    text = f"{IMPORTS}# delay: the server hangs until it is killed\ntime.sleep(1)\nx = 1\ntime.sleep(1)\n"
    assert [line for line, _ in faults(text)] == [LINE + 3]


def test_tests_are_checked_and_the_program_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("tests/unit", "src"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_it.py").write_text("import time\ntime.sleep(1)\n", "utf-8")
    assert main(tmp_path) == 1
    assert capsys.readouterr().out.startswith(
        "error: tests/unit/test_it.py:2: time.sleep waits for a fixed time; wait for"
    )
