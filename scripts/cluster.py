"""Starts a PostgreSQL, several `isthmus serve` that share it, and a proxy before them, on this machine: `make cluster`.

It needs neither root nor containers, listens on loopback alone, and removes its folder at the end. For trying several
servers out; deploy/ has the files for real ones. Options that it does not have go to each `isthmus serve`:

    make cluster CLUSTER_ARGS="--replicas 3 --port 8080 --slots 4 -m gemini:gemini-3-flash"
"""

import argparse
import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from connection_proxy import ConnectionProxy
from local_postgres import Postgres, PostgresError, local_postgres

ROOT = Path(__file__).resolve().parent.parent
MODEL = Path(__file__).with_name("cluster_model.yaml")
READY = "A2A server ready at "
START_SECONDS = 60.0
"""Maximum time for a replica to listen."""
END_SECONDS = 30.0
"""Maximum time for a replica to end after SIGTERM, beyond which it is killed."""
WATCH_SECONDS = 1.0
"""Time between two looks at the database's process."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the cluster."""


class ClusterError(Exception):
    """The cluster cannot start; the text says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of the command line; `options` go to each `isthmus serve`."""

    folder: Path
    workspace: Path
    replicas: int
    port: int
    keeps: bool
    options: tuple[str, ...]

    @property
    def token_file(self) -> Path:
        """File with the token of all replicas."""
        return self.folder / "token"

    @property
    def journal_file(self) -> Path:
        """File with the URL of the database and its password."""
        return self.folder / "journal-url"


@dataclass(frozen=True, slots=True)
class Replica:
    """A server, and the file that it logs to."""

    number: int
    process: Process
    log: Path


def read_arguments(arguments: Sequence[str]) -> Plan:
    """Return the plan in the arguments; print the reason and exit if they have none."""
    parser = argparse.ArgumentParser(
        "cluster", description="Start several servers with one database, and a proxy before them.", allow_abbrev=False,
        epilog="All other options go to each `isthmus serve`, such as --slots 4 --drain-seconds 10.",
    )  # fmt: skip
    parser.add_argument("--replicas", type=int, default=2, metavar="N", help="number of servers (2)")
    parser.add_argument("--port", type=int, default=0, help="port of the proxy (any free one)")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "cluster", help="for everything; is removed")
    parser.add_argument("--workspace", type=Path, help="folder that the agent works in (one in --folder)")
    parser.add_argument("--keep", action="store_true", help="keep the folder and the database's data at the end")
    parser.add_argument("-m", "--model", default=f"scripted:{MODEL}", help="the model (a script that needs no key)")
    found, others = parser.parse_known_args(arguments)
    if not 1 <= found.replicas <= 64:
        parser.error(f"--replicas {found.replicas}: expected 1 to 64")
    if not 0 <= found.port <= 65535:
        parser.error(f"--port {found.port}: expected 0 to 65535")
    if found.workspace is not None and not found.workspace.is_dir():
        parser.error(f"--workspace {found.workspace} is not a folder; expected an existing one")
    folder = found.folder.resolve()
    workspace = folder / "workspace" if found.workspace is None else found.workspace.resolve()
    return Plan(folder, workspace, found.replicas, found.port, found.keep, ("--model", found.model, *others))


def main(arguments: Sequence[str]) -> int:
    """Run the cluster until a signal; return the exit code."""
    plan = read_arguments(arguments)
    try:
        with _new_folder(plan):
            return asyncio.run(_run(plan))
    except (ClusterError, PostgresError, OSError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _new_folder(plan: Plan) -> Generator[None]:
    """Make the folder, which must not exist: nothing of the user's is ever removed."""
    try:
        plan.folder.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise ClusterError(
            f"{plan.folder} exists: a cluster runs in it, was killed, or was started with --keep. Remove it when"
            " nothing runs in it any more, or name another --folder"
        ) from error
    try:
        yield
    finally:
        if plan.keeps:
            print(f"Kept: {plan.folder}")
        else:
            shutil.rmtree(plan.folder, ignore_errors=True)


async def _run(plan: Plan) -> int:
    """Start everything, wait for a signal or for the end of what is needed, and end everything; return the code."""
    this, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert this is not None  # noqa: S101 - a coroutine runs in a task

    def stop() -> None:
        """Stop once: another signal does not interrupt what ends the programs."""
        for number in SIGNALS:
            loop.add_signal_handler(number, lambda: None)
        print("\nEnding ...", flush=True)
        this.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    with contextlib.suppress(asyncio.CancelledError):
        async with contextlib.AsyncExitStack() as stack:
            # Its programs are short, and block: nothing else runs yet, or any more.
            password = secrets.token_hex(16)
            started = local_postgres(_free_port(), password=password, parent=plan.folder, keeps=plan.keeps)
            database = stack.enter_context(started)
            journal = database.database()
            plan.journal_file.touch(0o600)
            plan.journal_file.write_text(journal, "utf-8")
            proxy = ConnectionProxy()
            url = f"http://127.0.0.1:{await stack.enter_async_context(proxy.listening(plan.port))}/"
            replicas = await stack.enter_async_context(_replicas(plan, url, journal, proxy))
            _explain(plan, url, replicas, database)
            return await _watch(replicas, database)
    return 0


@contextlib.asynccontextmanager
async def _replicas(plan: Plan, url: str, journal: str, proxy: ConnectionProxy) -> AsyncGenerator[list[Replica]]:
    """Start the servers, all at once, and wait until they listen; end them afterwards.

    Raises:
        ClusterError: one of them does not start.
    """
    started: list[Replica] = []
    try:
        for number in range(1, plan.replicas + 1):
            started.append(await _start(plan, number, url, journal))
        for replica in started:
            proxy.ports.append(await _port(replica))
        yield started
    finally:
        await _end(started)


async def _start(plan: Plan, number: int, url: str, journal: str) -> Replica:
    """Start a server with a data folder of its own."""
    plan.workspace.mkdir(exist_ok=True)
    folder = plan.folder / f"replica-{number}"
    folder.mkdir()
    options = (
        *("serve", "--port", "0", "--public-url", url, "--workspace", str(plan.workspace), "--no-ide"),
        *("--token-file", str(plan.token_file), "--data-dir", str(folder / "data"), *plan.options),
    )
    path = folder / "log"
    with path.open("wb") as log:
        # In the environment, and not in the list of processes: it has the password.
        variables = {**os.environ, "ISTHMUS_JOURNAL": journal}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "isthmus", *options), stdin=DEVNULL, stdout=PIPE, stderr=log, cwd=folder,
            env=variables, start_new_session=True,  # Ctrl-C is for this program, which ends them in good order
        )  # fmt: skip
    return Replica(number, process, path)


async def _port(replica: Replica) -> int:
    """Return the port of a server when it listens."""
    line, output = b"", replica.process.stdout
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            line = await output.readline() if output is not None else b""
    port = urlsplit(line.decode("utf-8", "replace").removeprefix(READY).strip()).port
    if port is None:
        said = replica.log.read_text("utf-8", "replace")[-2000:].strip()
        raise ClusterError(f"replica {replica.number} does not start: {said or f'no answer in {START_SECONDS:g} s'}")
    return port


async def _watch(replicas: Sequence[Replica], database: Postgres) -> int:
    """Say which program ends unasked; return the exit code when no server, or no database, is left."""
    running = {asyncio.create_task(each.process.wait()): each for each in replicas}
    while running:
        ended, _ = await asyncio.wait(running, timeout=WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            each = running.pop(task)
            print(f"Replica {each.number} (pid {each.process.pid}) ended with {_status(task.result())}.", flush=True)
            print(f"  Its log: {each.log}; replicas left: {len(running)}", flush=True)
        if not database.is_running():
            print(f"The database ended; its log (with --keep): {database.folder / 'log'}", flush=True)
            for each in running.values():
                each.process.kill()  # it would wait for the database
            return 1
    return 1


def _status(code: int) -> str:
    return f"status {code}" if code >= 0 else signal.Signals(-code).name


async def _end(replicas: Sequence[Replica]) -> None:
    """End the servers that run; kill those that take too long."""
    for signal_number, seconds in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, None)):
        running = [each.process for each in replicas if each.process.returncode is None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal_number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(process.wait() for process in running))


def _explain(plan: Plan, url: str, replicas: Sequence[Replica], database: Postgres) -> None:
    """Print what runs, and what to try."""
    print(f"Cluster ready: {url}")
    for each in replicas:
        print(f"  replica {each.number}  pid {each.process.pid}  log {each.log}")
    print(f"  database   pid {database.pid}  URL with password in {plan.journal_file}")
    print(f"  token file {plan.token_file}")
    print("Try in another terminal:")
    print(f"  isthmus connect {url} --token-file {plan.token_file} --workspace {plan.workspace}")
    print('  Say "count". While it counts, kill a replica: another one goes on with the task.')
    print(f"  kill -9 {replicas[0].process.pid}")
    print(f'  ISTHMUS_JOURNAL="$(cat {plan.journal_file})" isthmus tasks list')
    print("Ctrl-C ends everything.", flush=True)


def _free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
