"""A run with reviews in a companion that is killed repeatedly, while two agents continue as real ones do.

The state is checked after each fault; at the end nothing may be left.
"""

import asyncio
import contextlib
import json
import random
import socket
import sys
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.companion_agents import GeminiAgent, gemini_agent
from chaos.companion_setups import HeadlessSetup, processes_of
from support.claude_cli import ClaudeCli, Edit, claude_cli
from support.isthmus_program import CompanionProgram
from support.waiting import eventually_async

LONGEST_DELAY = 0.4
"""Maximum seconds from the first proposal to the fault."""


@dataclass(slots=True)
class Proposal:
    """One waiting edit. ``answer`` is the answer in the terminal of a Claude CLI, and ``edit`` its whole task."""

    agent: str
    file: Path
    marker: str
    answer: "asyncio.Future[bool] | None" = None
    edit: "asyncio.Task[Edit] | None" = None


class CompanionCrashRun:
    """A run of ``count`` faults in a setup. ``lines`` is the log, for the message of a failure."""

    def __init__(self, setup: HeadlessSetup, seed: int, count: int) -> None:
        self._setup = setup
        self._chance = random.Random(seed)  # noqa: S311 - to be repeated
        self._count = count
        self.lines: list[str] = []
        self.faults: Counter[str] = Counter()
        self._identity: dict[str, Any] = {}
        self._gemini: GeminiAgent | None = None
        self._claude: ClaudeCli | None = None
        self._held: list[socket.socket] = []

    async def play(self) -> None:
        """Run all faults; raise AssertionError for any violation."""
        setup = self._setup
        await setup.begin()
        try:
            companion = await setup.start()
            self._identity = self._identity_of(companion)
            self._check_files(companion)
            gemini = self._identity["gemini"]
            async with AsyncExitStack() as agents:
                self._gemini = await agents.enter_async_context(gemini_agent(gemini["port"], gemini["token"]))
                if setup.speaks_claude:
                    self._claude = await agents.enter_async_context(claude_cli(setup.workspace))
                for number in range(self._count):
                    async with asyncio.timeout(150):
                        await self._round(number)
            await setup.end()
        finally:
            await setup.abandon()
            for held in self._held:
                held.close()
        self._check_end()

    async def _round(self, number: int) -> None:
        chance, setup = self._chance, self._setup
        fault = chance.choice(setup.faults)
        proposals = self._proposals(number)
        act = chance.choice(["nothing", "nothing", "type", "type", "accept", "reject", "type and accept"])
        delay = chance.uniform(0, LONGEST_DELAY)
        says_yes = chance.random() < 0.5
        self.lines.append(f"{number}: {fault} after {delay:.3f} s of {[p.marker for p in proposals]}, {act}")
        typed = f"typed {number}"
        assert self._gemini is not None
        streams = self._gemini.streams
        proposing = [asyncio.create_task(self._propose(proposal)) for proposal in proposals]
        acting = asyncio.create_task(self._act(act, proposals[0], typed))
        await asyncio.wait({acting}, timeout=delay)
        must_be_kept = False
        if fault.startswith("nvim"):
            # Text typed a moment before a crash may be lost.
            is_typed = await asyncio.wait_for(acting, 60)
            must_be_kept = is_typed and act == "type" and (fault == "nvim quits" or await setup.has_reported(typed))
        await self._cause(fault, streams)
        is_typed = await asyncio.wait_for(acting, 60)
        await asyncio.wait_for(asyncio.gather(*proposing), 60)
        must_be_kept = must_be_kept or (is_typed and not fault.startswith("nvim"))
        for proposal in proposals:
            await self._answer_in_the_terminal(proposal, says_yes=says_yes)
        await eventually_async(self._no_diffs, what="no review waits any more")
        edits = [proposal.edit.result() for proposal in proposals if proposal.edit is not None]
        self._check_decisions(proposals)
        if must_be_kept and act == "type":
            await eventually_async(lambda: self._is_somewhere(typed, edits), what=f"where is {typed!r}?")
        self.faults[fault] += 1

    def _proposals(self, number: int) -> list[Proposal]:
        agents = ["gemini", "claude"] if self._claude is not None else ["gemini"]
        self._chance.shuffle(agents)
        agents = agents[: self._chance.randrange(1, len(agents) + 1)]
        share_a_file = self._chance.random() < 0.3
        found: list[Proposal] = []
        for agent in agents:
            file = self._setup.workspace / f"{'both' if share_a_file else agent}-{number}.txt"
            file.write_bytes(_original(file))
            found.append(Proposal(agent, file, f"{agent}-{number}-proposes"))
        return found

    async def _propose(self, proposal: Proposal) -> None:
        content = f"one\n{proposal.marker}\n"
        if proposal.agent == "gemini":
            assert self._gemini is not None
            await self._gemini.propose(proposal.file, content)
        else:
            assert self._claude is not None
            proposal.answer = asyncio.get_running_loop().create_future()
            proposal.edit = asyncio.create_task(self._claude.edit(proposal.file, content, proposal.answer))

    async def _act(self, act: str, proposal: Proposal, typed: str) -> bool:
        """Do the user's action; return whether they have typed."""
        if act == "nothing":
            return False
        await self._setup.asked("diffs", wait=5)
        is_typed = "type" in act and await self._setup.type_into(proposal.marker, typed)
        if act != "type":
            await self._setup.decide(proposal.file, proposal.marker, accept="accept" in act)
        return is_typed

    async def _cause(self, fault: str, streams: int) -> None:
        setup = self._setup
        assert self._gemini is not None
        match fault:
            case "drop gemini":
                await self._gemini.drop()
            case "drop claude":
                assert self._claude is not None
                self._claude.drop()
            case _:
                if fault != "ide away":
                    await setup.cause(fault)
                    self._hold_ports()
                    if fault == "kill twice":
                        process = setup.spawn()
                        # delay: the kill comes at a random moment of the start
                        await asyncio.sleep(self._chance.uniform(0, 2))  # sometime during its start
                        process.kill()
                        await asyncio.to_thread(process.wait, 30)
                        assert process.stdout is not None
                        process.stdout.close()
                    companion = await setup.start()
                    assert self._identity_of(companion) == self._identity, "not the same ports and tokens"
                    self._check_files(companion)
                else:
                    await setup.cause(fault)
        if fault not in ("drop claude", "ide away"):
            await eventually_async(
                lambda: self._gemini is not None and self._gemini.streams > streams, what="the stream is open again"
            )
        assert not self._gemini.refusals, f"the stream was refused: {self._gemini.refusals}"
        if self._claude is not None and fault != "drop gemini":
            await self._claude.lost()
            assert await self._claude.reconnect(_at_once), "the CLI did not find the companion again"

    def _hold_ports(self) -> None:
        """Reserve the ports of the companion while it is down; it can listen on them all the same."""
        for server in self._identity.values() if sys.platform == "linux" and not self._held else ():
            held = socket.socket()
            self._held.append(held)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", server["port"]))

    async def _answer_in_the_terminal(self, proposal: Proposal, *, says_yes: bool) -> None:
        if proposal.agent == "gemini":
            assert self._gemini is not None
            if not self._gemini.decisions(proposal.file):
                assert await self._gemini.take_back(proposal.file), "closeDiff was refused"
            return
        assert proposal.answer is not None
        assert proposal.edit is not None
        if not proposal.answer.done():
            proposal.answer.set_result(says_yes)
        await asyncio.wait_for(proposal.edit, 60)

    async def _no_diffs(self) -> bool:
        found = await self._setup.asked("diffs")
        return found is not None and found["diffs"] == []

    async def _is_somewhere(self, typed: str, edits: list[Edit]) -> bool:
        assert self._gemini is not None
        received = [content or "" for _, _, content in self._gemini.received]
        kept = [file.read_text(encoding="utf-8") for file in self._folder("kept").glob("*")]
        edited = [edit.text for edit in edits]
        return any(
            typed in text for text in (*received, *self._gemini.kept, *kept, *edited, *await self._setup.texts())
        )

    # Checks.

    def _check_decisions(self, proposals: list[Proposal]) -> None:
        assert self._gemini is not None
        for proposal in proposals:
            data = proposal.file.read_bytes()
            edit = proposal.edit.result() if proposal.edit is not None else None
            if edit is not None and edit.outcome == "written":
                assert proposal.marker in edit.text, f"{proposal.marker} got {edit}"
                assert data == edit.text.encode(), f"{proposal.file.name} holds {data!r}"
            elif not any(other.agent == "claude" and other.file == proposal.file for other in proposals):
                assert data == _original(proposal.file), f"unexpected write to {proposal.file.name}: {data!r}"
        markers = {str(proposal.file): proposal.marker for proposal in proposals if proposal.agent == "gemini"}
        for path, count in Counter(path for _, path, _ in self._gemini.received).items():
            assert count == 1, f"Gemini CLI got {count} decisions about {path}"
            if path in markers:
                ((_, content),) = self._gemini.decisions(Path(path))
                assert content is None or markers[path] in content, f"{markers[path]} got {content!r}"
        asked = {proposal.file for proposal in proposals if proposal.agent == "gemini"}
        for proposal in proposals:
            assert proposal.file in asked or not self._gemini.decisions(proposal.file), (
                "a decision about another agent's edit was sent"
            )

    def _identity_of(self, companion: CompanionProgram) -> dict[str, Any]:
        """Return ports and tokens by protocol."""
        identity: dict[str, Any] = {}
        for name, server in companion.ready["servers"].items():
            value = json.loads(Path(server["discovery_files"][0]).read_text(encoding="utf-8"))
            identity[name] = {"port": server["port"], "token": value["authToken"]}
        return identity

    def _check_files(self, companion: CompanionProgram) -> None:
        """Check that only files of the running companion exist."""
        pid = companion.process.pid
        announced = {Path(file) for server in companion.ready["servers"].values() for file in server["discovery_files"]}
        announced |= {self._setup.lock} if self._setup.lock is not None else set()
        left = sorted(str(path) for path in set(self._discovery_files()) - announced)
        assert not left, f"discovery files of dead companions are left: {left}"
        assert announced <= set(self._discovery_files())
        runtime = sorted(path.name for path in (self._setup.isolated_folders.runtime / "isthmus").iterdir())
        assert runtime == [f"companion-{pid}.json", f"companion-{pid}.sock"]
        (life,) = self._folder("companions").glob(
            "*.json"
        )  # a killed writer's temporary file may be beside it, for an hour
        assert life.name.endswith(f"-{pid}.json")

    def _discovery_files(self) -> list[Path]:
        places = self._setup.isolated_folders
        folders = (places.temporary / "gemini" / "ide", places.home / ".qwen" / "ide", places.home / ".claude" / "ide")
        # Beside them may be a killed writer's temporary file, for an hour: no CLI reads it.
        found = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        return [path for path in found if not (path.name.startswith(".") and path.name.endswith(".tmp"))]

    def _folder(self, name: str) -> Path:
        return self._setup.isolated_folders.home / ".local" / "share" / "isthmus" / name

    def _check_end(self) -> None:
        assert processes_of(self._setup.isolated_folders.home) == []
        assert self._discovery_files() == []
        assert list((self._setup.isolated_folders.runtime / "isthmus").iterdir()) == []
        left = [path.name for path in self._setup.isolated_folders.temporary.iterdir()]
        assert left == ["gemini"], f"temporary files are left: {left}"
        assert len(list(self._folder("companions").glob("*.json"))) == 1  # for the next process

    def log(self) -> str:
        """Return the log of the run, and the output of the companions."""
        with contextlib.suppress(OSError):
            return "\n".join(self.lines) + "\n" + self._setup.log.read_text(encoding="utf-8")[-4000:]
        return "\n".join(self.lines)


def _original(file: Path) -> bytes:
    return f"the original of {file.name}\r\n".encode()


async def _at_once(_: float) -> None:
    """Replace the pause between two attempts of a CLI."""
    await asyncio.sleep(0.02)  # delay: a short pause in place of the CLI's long one
