"""Claude Code (2.1.332) as observed where it asks for permissions: a program that a test drives over its pipes.

It takes the hook from ``--settings``. For each question it says in its session file that it waits, starts the hook by
``/bin/sh`` in a session of its own, and shows its dialogue at the same time. The first answer counts; the hook goes on
after an answer in the terminal, as the real CLI's does. A ``background`` question shows the dialogue only once the hook
has ended without an answer.

Input: ``{"ask": MESSAGE, "background": bool}``, ``{"answer": bool}`` or ``{"tell": MESSAGE}``, a line each. Output:
``{"asking": NUMBER}`` when the dialogue is shown, ``{"hook": PID}``, and at last ``{"allowed": bool, "by": "terminal" |
"hook", "message": str}``; for ``tell``, which runs the hooks of another event, ``{"told": EXIT_CODE, "output": str}``.
"""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIGURATION = Path(os.environ["HOME"]) / ".claude"
TRANSCRIPT = CONFIGURATION / "projects" / "-work" / "session-1.jsonl"


def say(**event: object) -> None:
    """Print an event for the test."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


@dataclass
class Cli:
    """The CLI's questions; ``lock`` guards them."""

    command: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    waiting: list[int] = field(default_factory=list[int])
    ended: set[int] = field(default_factory=set[int])
    count: int = 0

    def note(self, status: str) -> None:
        """Write the session file, not at once."""
        folder = CONFIGURATION / "sessions"
        folder.mkdir(parents=True, exist_ok=True)
        state = {"pid": os.getpid(), "sessionId": "session-1", "status": status, "statusUpdatedAt": time.time_ns()}
        (folder / f"{os.getpid()}.json").write_text(json.dumps(state), encoding="utf-8")

    def ask(self, message: dict[str, Any], *, is_background: bool) -> None:
        """Ask on both sides."""
        with self.lock:
            self.count += 1
            number = self.count
            if not is_background:
                self.show(number)
        threading.Thread(target=self.run_hook, args=(number, message), daemon=True).start()

    def show(self, number: int) -> None:
        """Show the dialogue; several wait for each other under one status."""
        self.waiting.append(number)
        if len(self.waiting) == 1:
            self.note("waiting")
        say(asking=number)

    def run_hook(self, number: int, message: dict[str, Any]) -> None:
        """Run the hook, and take its answer."""
        common = {"session_id": "session-1", "transcript_path": str(TRANSCRIPT), "cwd": str(Path.cwd())}
        asked = {**common, "permission_mode": "default", "hook_event_name": "PermissionRequest", **message}
        project = Path(".claude/settings.json")  # of a folder that the user trusts
        variables: dict[str, str] = {}
        if project.exists():
            variables = json.loads(project.read_text(encoding="utf-8"))["env"]
        hook = subprocess.Popen(
            ["/bin/sh", "-c", self.command], env={**os.environ, **variables},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, text=True, encoding="utf-8",
        )  # fmt: skip
        say(hook=hook.pid)
        output, _ = hook.communicate(json.dumps(asked))
        decision = json.loads(output)["hookSpecificOutput"]["decision"] if output.strip() else None
        with self.lock:
            if decision is not None:
                self.end(number, decision["behavior"] == "allow", "hook", decision.get("message", ""))
            elif number not in self.waiting and "agent_id" in message:
                self.show(number)

    def end(self, number: int, is_allowed: bool, by: str, message: str = "") -> None:
        """End a question, unless it has ended."""
        was_shown = number in self.waiting
        if not was_shown and by == "terminal":
            return
        if was_shown:
            self.waiting.remove(number)
        elif number in self.ended:
            return
        self.ended.add(number)
        if not self.waiting:
            self.note("busy")
        say(allowed=is_allowed, by=by, message=message)


def run_hooks(hooks: dict[str, Any], message: dict[str, Any]) -> None:
    """Run the hooks of the message's event; what those of a prompt print would be added to it."""
    for entry in hooks[message["hook_event_name"]]:
        for hook in entry["hooks"]:
            done = subprocess.run(
                ["/bin/sh", "-c", hook["command"]], input=json.dumps({"session_id": "session-1", **message}),
                timeout=hook["timeout"], capture_output=True, text=True, encoding="utf-8", check=False,
            )  # fmt: skip
            say(told=done.returncode, output=done.stdout + done.stderr)


def main() -> None:
    """Do what the test says until its end of the pipe closes."""
    settings = json.loads(sys.argv[sys.argv.index("--settings") + 1])
    entries = settings["hooks"].get("PermissionRequest", [])  # none with --no-permissions
    cli = Cli(entries[0]["hooks"][0]["command"] if entries else "")
    cli.note("idle")
    say(started=os.getpid())
    for line in sys.stdin:
        told = json.loads(line)
        if "ask" in told:
            with cli.lock:
                if not cli.waiting:
                    cli.note("busy")
            cli.ask(told["ask"], is_background=told.get("background", False))
        elif "tell" in told:
            run_hooks(settings["hooks"], told["tell"])
        else:
            with cli.lock:
                if cli.waiting:
                    cli.end(cli.waiting[0], told["answer"], "terminal")


if __name__ == "__main__":
    main()
