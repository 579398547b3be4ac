"""A program whose event loop hangs ends by itself; one that only waits, was stopped, or works in threads does not."""

import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager

import pytest

LIMIT = 0.2
"""CPU seconds, where the programs have a minute."""

START = """
    import asyncio, re, signal, subprocess, sys, threading, time
    from isthmus.programs.process.event_loop import run_loop

    def hang():
        re.match("(a+)+b", "a" * 60)

    def burn(seconds):
        begun = time.process_time()
        while time.process_time() - begun < seconds:
            pass
"""


@contextmanager
def program(work: str) -> Generator["subprocess.Popen[str]"]:
    """Start a program that runs `work` with the limit."""
    text = f"{textwrap.dedent(START)}\nasync def work():\n{textwrap.indent(textwrap.dedent(work), '    ')}\n"
    command = [sys.executable, "-c", f"{text}\nrun_loop(work(), hang_seconds={LIMIT})\nprint('ended')"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        "hang()",
        "await asyncio.to_thread(hang)",
        "asyncio.get_running_loop().call_later(0.1, hang)\nawait asyncio.sleep(100)",
    ],
)
def test_a_program_that_hangs_in_an_expression_ends_and_writes_where(work: str) -> None:
    with program(work) as process:
        _, error = process.communicate(timeout=60)
    assert process.returncode == -26, "SIGVTALRM"
    assert "in hang" in error
    assert "(most recent call first)" in error


@pytest.mark.slow
def test_a_program_that_hangs_ends_though_it_was_told_to_end_before() -> None:
    work = """
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
        print("ready", flush=True)
        hang()
    """
    with program(work) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == -26


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        "await asyncio.to_thread(burn, 0.6)",
        "await asyncio.gather(*(asyncio.to_thread(burn, 0.3) for _ in range(2)))",
        "for _ in range(60):\n    burn(0.01)\n    await asyncio.sleep(0)",
    ],
    ids=["a thread", "threads", "the loop itself, in turns"],
)
def test_a_program_that_works_for_longer_while_its_loop_has_turns_goes_on(work: str) -> None:
    with program(work) as process:
        output, error = process.communicate(timeout=100)
    assert (process.returncode, output, error) == (0, "ended\n", "")


@pytest.mark.slow
def test_a_program_that_was_stopped_for_longer_goes_on() -> None:
    work = """
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    """
    text = textwrap.dedent(work)
    with program(text) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        assert not select.select([process.stdout], [], [], LIMIT * 1.5)[0]
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate("\n", timeout=60)
    assert (process.returncode, output) == (0, "ended\n")


@pytest.mark.slow
def test_programs_that_it_starts_have_no_limit() -> None:
    child = (
        "import signal; print(signal.getitimer(signal.ITIMER_VIRTUAL),"
        " signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL)"
    )
    with program(f"subprocess.run([sys.executable, '-c', {child!r}])") as process:
        output, _ = process.communicate(timeout=60)
    assert output == "(0.0, 0.0) True\nended\n"
