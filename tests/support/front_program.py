"""A program: the interactive or the headless front on a scripted agent, `python -m support.front_program SCENARIO`.

For tests that need a real terminal. SIGUSR1 answers the first open question as another surface ("neovim") would;
SIGUSR2 lets a waiting scenario continue; SIGALRM sends a notice, and SIGPROF makes an editor show edit-1. SIGVTALRM
puts the clock of its event loop forward by the pause before a question takes answers: a test that presses keys within
the pause makes it longer than a busy machine needs, and waits for none of it. Requests to the agent are appended to
--record as JSON lines.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from isthmus.client import PromptMessage, TaskSnapshot, Turn
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import RetryNotice, StateChange, TaskState, TextContent, Thought, ToolCallUpdate
from isthmus.internal_events import ModelReply
from isthmus.terminal.interactive.announcements import Announcements, Notice, ShownInEditor
from support.memory_agent import Ask, MemoryAgent, Progress, Step, Wait

WORKSPACE = "/workspace"
PAUSE_SECONDS = 0.05
"""Seconds before a question takes answers, for tests that press no keys in that time: shorter than for users."""
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\u202egpj.exe"

OPTIONS = (
    ConfirmationOption("proceed_once", "Allow once", "this one time"),
    ConfirmationOption("proceed_always_tool", "Always allow", "this tool, for the rest of the session"),
    ConfirmationOption("cancel", "Reject", "the model is told"),
)
OLD = 'def greet(name):\n    return "Hi " + name\n\n\nprint(greet("you"))\n'
NEW = 'def greet(name):\n    return f"Hello, {name}!"\n\n\nprint(greet("you"))\n'


class RecordingAgent(MemoryAgent):
    """A memory agent that records requests. If ``gate`` is given, it lists its tasks once the gate is open."""

    def __init__(
        self,
        script: Callable[[PromptMessage], Sequence[Step]],
        record: Path | None,
        gate: asyncio.Event | None = None,
    ) -> None:
        super().__init__(script)
        self._record = record
        self._gate = gate

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        if self._gate is not None:
            self._write({"list": True})
            await self._gate.wait()
        return await super().tasks(limit)

    async def prompt(self, message: PromptMessage) -> Turn:
        self._write({"prompt": message.text, "session": message.context_id})
        return await super().prompt(message)

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        turn = await super().answer(task_id, confirmations, answered_by=answered_by, context_id=context_id)
        for one in confirmations:
            content = one.file_details.new_content if one.file_details is not None else None
            self._write({"answer": one.selected_option_id, "by": answered_by, "content": content})
        return turn

    async def cancel(self, task_id: str) -> TaskSnapshot:
        self._write({"cancel": True})
        return await super().cancel(task_id)

    def _write(self, entry: object) -> None:
        if self._record is not None:
            with self._record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def edit_call(call_id: str = "edit-1", name: str = "greeting.py", old: str | None = OLD, new: str = NEW) -> ToolCall:
    """Return a replace call that waits for permission."""
    diff = FileDiff(name, f"{WORKSPACE}/{name}", new, old)
    return ToolCall(
        call_id,
        ToolCallStatus.PENDING,
        "replace",
        {"file_path": name},
        name,
        confirmation_request=ConfirmationRequest(OPTIONS, file_edit_details=diff),
    )


def shell_call(call_id: str = "shell-1", command: str = "make test") -> ToolCall:
    """Return a shell call that waits for permission."""
    request = ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails(command, WORKSPACE))
    return ToolCall(
        call_id,
        ToolCallStatus.PENDING,
        "run_shell_command",
        {"command": command},
        command,
        confirmation_request=request,
    )


def steps_of_call(
    call_id: str,
    tool: str,
    description: str,
    *,
    output: ToolOutput | None = None,
    error: ErrorDetails | None = None,
    live: Sequence[str] = (),
) -> list[Step]:
    """Return the states of a call that needs no permission, from PENDING to its end."""

    def update(status: ToolCallStatus, content: str | None = None) -> ToolCallUpdate:
        is_final = status.is_final
        return ToolCallUpdate(
            ToolCall(
                call_id,
                status,
                tool,
                {"path": description},
                description,
                content,
                output if is_final else None,
                error if is_final else None,
            )
        )

    end = ToolCallStatus.SUCCEEDED if error is None else ToolCallStatus.FAILED
    progress = [Progress(update(ToolCallStatus.EXECUTING, text)) for text in live]
    return [update(ToolCallStatus.PENDING), update(ToolCallStatus.EXECUTING), *progress, update(end)]


class Scenarios:
    """Scripts of the agent, by name. SIGUSR2 opens the first gate that is closed."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.second_gate = asyncio.Event()
        self.gates = [self.gate, self.second_gate]

    def open_gate(self) -> None:
        """Let the script that waits at the next gate continue."""
        next(gate for gate in self.gates if not gate.is_set()).set()

    def script(self, name: str) -> Callable[[PromptMessage], Sequence[Step]]:
        """Return the script of a scenario."""
        found: Callable[[PromptMessage], Sequence[Step]] = getattr(self, name)
        return found

    def tour(self, message: PromptMessage) -> Sequence[Step]:
        """Send an event of every kind, for looking at the output."""
        output = "".join(f"test_{number} ok\n" for number in range(30)) + "30 passed\n"
        shell_output = ToolOutput(text=output)
        return [
            Thought(AgentThought("Finding the greeting", "It is in greeting.py.")),
            TextContent("t1", "I'll look at **the greeting** first, then change `greet` so that it "),
            TextContent("t1", "uses an f-string:\n\n- read the file\n- propose the change and run the tests, which "),
            TextContent("t1", "may take a while on this machine\n"),
            *steps_of_call("r1", "read_file", "greeting.py", output=ToolOutput(text=OLD)),
            *steps_of_call("r2", "read_file", "missing.py", error=ErrorDetails("no such file: missing.py")),
            RetryNotice(2, 5, 2.0, "429 rate limited"),
            Ask((edit_call(),)),
            *steps_of_call("s1", "run_shell_command", "make test", output=shell_output, live=[output[:40], output]),
            Wait(self.gate),
            TextContent("t2", "## Done\n\nThe greeting says *Hello* now:\n\n```python\nprint(greet('you'))\n```\n"),
            ModelReply("t2", "scripted", {}, 1200, 340, 200, 40),
        ]

    def stream(self, message: PromptMessage) -> Sequence[Step]:
        """Send text in two parts, the second after the gate."""
        return [TextContent("t", "first part "), Wait(self.gate), TextContent("t", "and the second part.")]

    def edit(self, message: PromptMessage) -> Sequence[Step]:
        """Propose a change of a file."""
        return [Ask((edit_call(),)), TextContent("t", "All done.")]

    def hunks(self, message: PromptMessage) -> Sequence[Step]:
        """Propose a change of three places of a file."""
        call = edit_call("h1", "a.txt", "one\ntwo\nthree\nfour\nfive\n", "ONE\ntwo\nTHREE\nfour\nFIVE\n")
        return [Ask((call,)), TextContent("t", "All done.")]

    def late_edit(self, message: PromptMessage) -> Sequence[Step]:
        """Propose a change of a file after the gate."""
        return [TextContent("t", "first part "), Wait(self.gate), *self.edit(message)]

    def two(self, message: PromptMessage) -> Sequence[Step]:
        """Ask two questions at once."""
        return [Ask((edit_call(), shell_call())), TextContent("t", "Both decided.")]

    def hostile(self, message: PromptMessage) -> Sequence[Step]:
        """Send terminal control sequences in every text of a model or a tool."""
        call = edit_call("h1", f"a{HOSTILE}.py", None, f"x = 1  # {HOSTILE}\n")
        return [
            Thought(AgentThought(HOSTILE, "")),
            TextContent("t", f"text {HOSTILE} end\n"),
            *steps_of_call("s", "run_shell_command", f"cat {HOSTILE}", output=ToolOutput(text=f"out {HOSTILE}\n")),
            *steps_of_call("f", f"tool{HOSTILE}", "x", error=ErrorDetails(f"failed {HOSTILE}")),
            Ask((call,)),
            Ask((shell_call("h2", f"rm {HOSTILE}"),)),
            TextContent("t2", "survived"),
        ]

    def live(self, message: PromptMessage) -> Sequence[Step]:
        """Run a program whose output is seen while it runs."""
        steps = steps_of_call("s", "run_shell_command", "make", output=ToolOutput(text="one\ntwo\nthree\n"))
        running = ToolCall("s", ToolCallStatus.EXECUTING, "run_shell_command", {}, "make", "one\ntwo\n")
        seen = [Wait(self.gate), Progress(ToolCallUpdate(running)), Wait(self.second_gate)]
        return [*steps[:2], *seen, *steps[2:], TextContent("t", "Built.")]

    def endless(self, message: PromptMessage) -> Sequence[Step]:
        """Run a turn that ends only if it is cancelled; answer other prompts."""
        if "wait" not in message.text:
            return [TextContent("t", f"You said: {message.text}")]
        return [TextContent("t", "working on it\n"), Wait(asyncio.Event())]

    def many(self, message: PromptMessage) -> Sequence[Step]:
        """Ask a question with more options than there are digits."""
        options = tuple(ConfirmationOption(f"option_{number}", f"Option {number}") for number in range(1, 13))
        request = ConfirmationRequest((*options, *OPTIONS), execute_details=ExecuteDetails("make"))
        return [Ask((replace(shell_call(), confirmation_request=request),)), TextContent("t", "Chosen.")]

    def long_choice(self, message: PromptMessage) -> Sequence[Step]:
        """Ask a question whose answers need long descriptions."""
        covered = (
            "For the rest of this session, commands that begin with these words run without asking; options that write"
            " files or run other programs, and output into files, are asked each time"
        )
        always = ConfirmationOption("proceed_always_prefix", "Always allow make test", covered)
        request = ConfirmationRequest(
            (OPTIONS[0], always, OPTIONS[2]), execute_details=ExecuteDetails("make", WORKSPACE)
        )
        return [Ask((replace(shell_call(), confirmation_request=request),)), TextContent("t", "Chosen.")]

    def answer(self, message: PromptMessage) -> Sequence[Step]:
        """Write a table, code and a link, a few characters at a time, and wait within the table."""
        before = (
            "The **sizes**, see [the docs](https://example.org/sizes):\n\n| File | 漢字 |\n|---|---:|\n| a.py | 1 |\n"
        )
        after = "| b.py | 20 |\n\n```python\ndef greet():\n    return 'Hello'\n```\nDone.\n"

        def pieces(text: str) -> list[Step]:
            return [TextContent("t", text[at : at + 5]) for at in range(0, len(text), 5)]

        return [*pieces(before), Wait(self.gate), *pieces(after)]

    def lines(self, message: PromptMessage) -> Sequence[Step]:
        """Write ten thousand lines; a gate is before each 500 of them but the first."""
        self.gates = [asyncio.Event() for _ in range(19)]
        waits = [[Wait(gate)] for gate in self.gates]
        steps: list[Step] = []
        for number in range(0, 10_000, 4):
            if number and number % 500 == 0:
                steps += waits[number // 500 - 1]
            text = "".join(f"line {each:05} of ten thousand\n" for each in range(number, number + 4))
            steps.append(TextContent("t", text))
        return steps

    def failing(self, message: PromptMessage) -> Sequence[Step]:
        """Run a turn that ends at its limit."""
        return [TextContent("t", "trying"), StateChange(TaskState.FAILED, "20 turns were not enough", "turn_limit")]


async def answer_elsewhere(agent: MemoryAgent) -> None:
    """Answer the first open question, as another surface does."""
    for snapshot in await agent.tasks():
        if snapshot.pending:
            answer = ToolCallConfirmation(snapshot.pending[0].tool_call_id, "proceed_once")
            await agent.answer(snapshot.task_id, [answer], answered_by="neovim")
            return


async def seed(agent: MemoryAgent, text: str) -> None:
    """Store a session that an earlier run left with an open question."""
    turn = await agent.prompt(PromptMessage(text, settings={"workspace_path": WORKSPACE}))
    async for _ in turn.deliveries:
        pass


class ForwardLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    forward = 0.0
    """Seconds by which the clock is ahead of the monotonic clock."""

    def time(self) -> float:
        """Return the monotonic time in seconds plus `forward`."""
        return super().time() + self.forward

    def put_forward(self, seconds: float) -> None:
        """Run everything that is due within these seconds now."""
        self.forward += seconds


async def run(arguments: argparse.Namespace) -> int:
    """Run the front and return its exit code."""
    scenarios = Scenarios()
    gate = scenarios.gate if arguments.slow_list else None
    agent = RecordingAgent(scenarios.script(arguments.scenario), arguments.record, gate)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ForwardLoop)
    loop.add_signal_handler(signal.SIGVTALRM, loop.put_forward, arguments.pause)
    answering: list[asyncio.Task[None]] = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: answering.append(asyncio.ensure_future(answer_elsewhere(agent))))
    loop.add_signal_handler(signal.SIGUSR2, scenarios.open_gate)
    announcements = Announcements()
    notice = Notice("custom commands: broken.toml cannot be used")
    loop.add_signal_handler(signal.SIGALRM, announcements.say, notice)
    loop.add_signal_handler(signal.SIGPROF, announcements.say, ShownInEditor("edit-1", "Neovim"))
    if arguments.early_notice:
        announcements.say(notice)
    settings = {"workspace_path": WORKSPACE}
    if arguments.seed:
        await seed(agent, arguments.seed)
    try:
        if arguments.prompt is not None:
            from isthmus.terminal.headless.headless import HeadlessOptions, prompt_with_stdin, run_headless

            prompt = prompt_with_stdin(arguments.prompt, sys.stdin, sys.stderr)
            options = HeadlessOptions(prompt, arguments.output, settings, model="scripted")
            return await run_headless(agent, options, sys.stdout, sys.stderr)
        from isthmus.terminal.interactive.interactive import run_interactive
        from isthmus.terminal.interactive.interactive_options import InteractiveOptions

        return await run_interactive(
            agent,
            InteractiveOptions(
                settings,
                WORKSPACE,
                arguments.resume,
                heading=("Isthmus, scripted model", WORKSPACE),
                history_file=arguments.history,
                pause=arguments.pause,
                announcements=announcements,
            ),
        )
    finally:
        await agent.aclose()


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario")
    parser.add_argument("-p", dest="prompt")
    parser.add_argument("-o", dest="output", default="text")
    parser.add_argument("--resume")
    parser.add_argument("--seed")
    parser.add_argument("--history", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--early-notice", action="store_true", help="a notice before the front begins")
    parser.add_argument("--slow-list", action="store_true", help="list the sessions after SIGUSR2")
    parser.add_argument("--pause", type=float, default=PAUSE_SECONDS, help="before a question takes answers")
    parser.add_argument("--modules", action="store_true", help="print to stderr which packages were imported")
    arguments = parser.parse_args()
    began = time.process_time()
    with asyncio.Runner(loop_factory=ForwardLoop) as runner:
        status = runner.run(run(arguments))
    if arguments.modules:
        packages = sorted({name.partition(".")[0] for name in sys.modules})
        print(json.dumps({"packages": packages, "cpu": time.process_time() - began}), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
