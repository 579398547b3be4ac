"""Runs the A2A project's official kits against a hosted agent, and compares the failures with the known ones.

``python scripts/conformance_a2a.py FOLDER KIT [--acp] [SUITE ...]``: KIT is a git checkout (or git directory) of
https://github.com/a2aproject/a2a-tck, which is not changed. The revision of each kit is copied from it into FOLDER,
which also holds the virtual environment for the kits. Each suite gets its own agent (scripts/conformance/a2a_agent.py),
with ``--acp`` a hosted ACP agent: then only the suites of 0.3 run, since the suite of 1.0 tells the agent by the ids of
its messages what to do. Exit status: 0 if exactly the known tests fail, 1 if not, 2 if the kits cannot be run.
"""

import os
import subprocess
import sys
import tarfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

from known_failures import differences, known_failures

ROOT = Path(__file__).resolve().parent.parent
AGENT = ROOT / "scripts" / "conformance" / "a2a_agent.py"
SUITE_SECONDS = 900
REVISIONS = {
    "1.0": "357c4a87afa2818731590647cccbea31c31733a2",
    "0.3": "eb1f804c27ea25db8805264d9ed2d7ca077a7776",
}
"""Commits of the kit's branches 1.0-dev and 0.3.x, by the version of A2A."""


class KitError(Exception):
    """The kits cannot be run; the message has the reason and advice."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One run of a kit: `version` is A2A's, `arguments` are pytest's, without the address and the report."""

    name: str
    version: str
    address_option: str
    arguments: tuple[str, ...]


_OLD = ("tests/mandatory", "tests/optional", "--test-scope=all")
SUITES = (
    Suite("1.0", "1.0", "--sut-host", ("tests/compatibility",)),
    Suite("0.3 JSON-RPC", "0.3", "--sut-url", (*_OLD, "--transports=jsonrpc")),
    Suite("0.3 HTTP+JSON", "0.3", "--sut-url", (*_OLD, "--transports=rest")),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of a suite's tests; `failed` maps the name of each failed test to its reason."""

    passed: int
    skipped: int
    failed: dict[str, str]


def check_out(kit: Path, version: str, folder: Path) -> Path:
    """Return the folder with the kit of a version, copied from the git repository `kit` if it does not exist yet.

    Raises:
        KitError: `kit` is not a git repository, or does not have the revision.
    """
    revision = REVISIONS[version]
    place = folder / f"kit-{version}-{revision[:12]}"
    if place.is_dir():
        return place
    archive = subprocess.run(
        ["git", "-C", str(kit), "archive", "--format=tar", revision], capture_output=True, check=False
    )
    if archive.returncode:
        reason = archive.stderr.decode(errors="replace").strip()
        raise KitError(
            f"{kit} does not have revision {revision} of the A2A kit ({reason}). Expected a git clone of "
            f"https://github.com/a2aproject/a2a-tck: run git -C {kit} fetch --all"
        )
    partial = place.with_name(f"{place.name}.partial")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as packed:
        packed.extractall(partial, filter="data")
    return partial.rename(place)


@contextmanager
def serving(version: str, log: Path, kind: str) -> Generator[str]:
    """Serve the agent for a version of A2A and yield its URL; its log goes to `log`."""
    command = [sys.executable, str(AGENT), "0", version, kind]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=output, text=True, encoding="utf-8", env=environment
        ) as agent,
    ):
        try:
            url = agent.stdout.readline().strip() if agent.stdout is not None else ""
            if not url:
                raise KitError(f"{AGENT} ended before it printed its URL; see {log}")
            yield url
        finally:
            agent.terminate()


def run(suite: Suite, kit: Path, python: Path, log: Path, kind: str) -> Outcome:
    """Run one suite in the folder of its kit; pytest's output goes to `log`.

    Raises:
        KitError: the suite did not finish.
    """
    report = log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    with serving(suite.version, log.with_suffix(".agent.log"), kind) as url, log.open("w", encoding="utf-8") as output:
        command = [str(python), "-m", "pytest", *suite.arguments, f"{suite.address_option}={url}"]
        command += ["-p", "no:cacheprovider", "--tb=short", "-q", f"--junitxml={report}"]
        try:
            subprocess.run(
                command, cwd=kit, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=SUITE_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise KitError(f"the suite {suite.name} took more than {SUITE_SECONDS} s; see {log}") from error
    if not report.is_file():
        raise KitError(f"the suite {suite.name} left no report; see {log}")
    return read_report(report.read_text("utf-8"))


def read_report(text: str) -> Outcome:
    """Return the outcome in a report of pytest (JUnit XML); tests have pytest's names, without folders."""
    passed, skipped, failed = 0, 0, dict[str, str]()
    for case in ElementTree.fromstring(text).iter("testcase"):  # noqa: S314 - written by the pytest that was started
        wrong = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        if wrong is not None:
            failed[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = wrong.get("message", "")
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return Outcome(passed, skipped, failed)


def main(arguments: Sequence[str]) -> int:
    """Run the suites; see the module."""
    folder, kit = (Path(each).expanduser().absolute() for each in arguments[:2])
    kind = "acp" if "--acp" in arguments else "own"
    wanted = [each for each in arguments[2:] if each != "--acp"]
    known, is_right = known_failures("a2a"), True
    for suite in SUITES:
        if (wanted and suite.name not in wanted) or (kind == "acp" and suite.version == "1.0"):
            continue
        place = check_out(kit, suite.version, folder)
        log = folder / f"{suite.name.replace(' ', '-').lower()}-{kind}.log"
        outcome = run(suite, place, folder / "venv" / "bin" / "python", log, kind)
        wrong = differences(dict.fromkeys(outcome.failed, 1), known[suite.name])
        is_right = is_right and not wrong and bool(outcome.passed)
        counts = f"{outcome.passed} passed, {len(outcome.failed)} failed, {outcome.skipped} skipped"
        print(f"{'BAD ' if wrong or not outcome.passed else 'ok  '} {suite.name}: {counts} ({log})", flush=True)
        for name, reason in outcome.failed.items():
            print(
                f"       {'known' if name in known[suite.name] else 'NEW  '} {name}: {' '.join(reason.split())[:160]}"
            )
        for line in wrong:
            print(f"       {line}")
    return 0 if is_right else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KitError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
