"""One client's session: its processes, one after the other, and what the endpoint billed."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from bench.money.clients import Client, Place
from bench.money.differences import Difference
from bench.money.endpoint import Bill, BilledEndpoint
from bench.money.script import IMAGE, Step, make_workspace, remember, session, wrong_edits
from bench.processes import clean_home
from support.images import png


@dataclass(frozen=True, slots=True)
class SessionBill:
    """Bill of a whole session. ``problems`` are all that did not go as the script says."""

    client: Client
    steps: tuple[Step, ...]
    bills: tuple[Bill, ...]
    differences: tuple[Difference, ...]
    problems: tuple[str, ...]

    @property
    def price(self) -> Decimal:
        """US dollars of all requests whose price is known."""
        return sum((bill.price for bill in self.bills if bill.price is not None), Decimal(0))

    @property
    def price_after_summary(self) -> Decimal:
        """US dollars of the requests from the step on that asks for a summary, itself included; 0 without one."""
        first = next((step.number for step in self.steps if step.kind == "compact"), len(self.steps) + 1)
        known = (bill.price for bill in self.bills if bill.price is not None and bill.step >= first)
        return sum(known, Decimal(0))

    @property
    def cached_share(self) -> float:
        """Share of the input tokens that were read from the cache."""
        return sum(bill.usage.cached for bill in self.bills) / max(1, sum(bill.usage.input for bill in self.bills))

    @property
    def visible(self) -> int:
        """Tokens of files in the last request of the conversation."""
        return next((bill.file_tokens for bill in reversed(self.bills) if bill.lines is not None), 0)

    @property
    def most_visible(self) -> int:
        """Tokens of files in the request that had the most of them."""
        return max((bill.file_tokens for bill in self.bills), default=0)


def run_session(
    client: Client, kinds: Sequence[str], *, is_verbose: bool = False, bodies: Path | None = None
) -> SessionBill:
    """Run a session with a client, and return its bill; keep the bodies of all requests in a folder."""
    steps = session(kinds)
    with clean_home() as environment:
        place = Place(environment, _workspace(environment), "")
        make_workspace(place.workspace, kinds, client.memory)
        (place.workspace / IMAGE).write_bytes(png(64, 64))
        _git(place, "init", "--quiet")
        _git(place, "add", "--all")
        _git(place, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", "Begin")
        with BilledEndpoint(str(place.workspace), bodies) as endpoint:
            place = Place(environment, place.workspace, endpoint.url)
            variables = {**environment, "PWD": str(place.workspace), **client.prepare(place)}
            for step in steps:
                if step.kind == "remember":
                    remember(place.workspace, client.memory, step)
                endpoint.begin(step)
                problems = list(client.run(place, variables, step))
                if not endpoint.is_done():
                    problems.append("the conversation did not reach its last message")
                endpoint.problems += [f"step {step.number} ({step.kind}): {each}" for each in problems]
                if is_verbose:
                    _print(step, endpoint.bills)
        client.close()
        problems = [*endpoint.problems, *(f"not edited: {each}" for each in wrong_edits(place.workspace, steps))]
    return SessionBill(client, steps, tuple(endpoint.bills), tuple(endpoint.differences), tuple(problems))


def _workspace(environment: dict[str, str]) -> Path:
    return Path(environment["PWD"])


def _git(place: Place, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=place.workspace, env=dict(place.environment), check=True)


def _print(step: Step, bills: Sequence[Bill]) -> None:
    for bill in bills:
        if bill.step == step.number:
            usage = bill.usage
            kind = "side" if bill.lines is None else f"{bill.file_tokens:,} of files"
            print(
                f"    {step.number:2} {step.kind:8} {bill.model:24} in {usage.input:7,} read {usage.cached:7,} "
                f"written {usage.cache_write:7,} ({usage.cache_write_1h:,} 1h) out {usage.output:4} "
                f"{'?' if bill.price is None else f'{bill.price:.4f}'}  {kind}",
                flush=True,
            )
