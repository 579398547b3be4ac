"""Runs a command in bubblewrap, in a copy of its folder, and keeps what it changed until the user has answered.

The command has no network, sees the system, tools and the copy, and can write nothing else. Its processes end with it.
"""

import asyncio
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from isthmus.record import record
from isthmus.sandbox.confinement import Confinement, Launch, environment_of
from isthmus.sandbox.policy import SandboxError
from isthmus.tools.port.base import ToolContext
from isthmus.tools.shell.process_group import process_group
from isthmus.tools.shell.shell_output import ShellOutput
from isthmus.tools.shell.trials.begun_output import BegunOutput
from isthmus.tools.shell.trials.copies import Copies
from isthmus.tools.shell.trials.copying import CopyLimits, FolderCopy, FoundChanges, TrialError, changes_of
from isthmus.tools.shell.trials.effect import Judgement, judge
from isthmus.tools.shell.trials.facts import facts_of
from isthmus.tools.shell.trials.git_folder import seen_copy
from isthmus.tools.shell.trials.places import new_place, remove

TRIALS_FOLDER = "trials"
"""Name of the folder of the copies in the data folder."""
TRIAL_SECONDS = 60.0
"""Maximum time in seconds of a command in a copy."""
MAXIMUM_OUTPUT_BYTES = 8 * 1024 * 1024
MAXIMUM_WRITTEN_BYTES = 512 * 1024 * 1024
"""Maximum size in bytes that the disk may lose while a command runs."""
_SECONDS_BETWEEN_LOOKS = 0.5
_KILLED_SECONDS = 10.0
"""Maximum time in seconds for the end of a command that was killed."""
_WANTS_NETWORK, _CANNOT_RUN = 113, (126, 127)
_WATCHED = r"""
printf '%s\n' "$2"
ulimit -c 0; ulimit -f 262144; ulimit -u 4096 2>/dev/null
"$0" -c "$1"; code=$?; wanted=0
while read -r -a names && read -r -a values; do for i in "${!names[@]}"; do case "${names[0]}${names[i]}" in
Ip:OutNoRoutes|Udp:NoPorts|Tcp:AttemptFails) [ "${values[i]}" = 0 ] || wanted=1;; esac; done; done </proc/net/snmp
while read -r name value; do case $name in Ip6OutNoRoutes|Udp6NoPorts) [ "$value" = 0 ] || wanted=1;; esac
done </proc/net/snmp6
[ $wanted = 0 ] || exit 113; exit $code
"""
"""Runs a command with limits. The exit code 113 says that it asked for the network, by the counters of the kernel."""


@record
class CommandEffect:
    """Effect of a command in a copy of its folder."""

    exit_code: int
    judgement: Judgement
    found: FoundChanges


class CommandTrials:
    """Tries commands in copies below ``folder``, each of which is removed at the end."""

    def __init__(
        self,
        confinement: Confinement,
        folder: Path,
        *,
        seconds: float = TRIAL_SECONDS,
        limits: CopyLimits | None = None,
        context_files: tuple[str, ...] = (),
    ) -> None:
        self._confinement = confinement
        self._folder = folder.resolve()
        self._seconds = seconds
        self._context_files = context_files
        self._copies = Copies(self._folder, limits or CopyLimits())

    async def attempt(
        self,
        command: tuple[str, str],
        folder: Path,
        environment: Mapping[str, str],
        context: ToolContext,
        output: ShellOutput,
    ) -> CommandEffect:
        """Run a shell and its command line in a copy of the workspace, and return what it did.

        Raises:
            TrialError: what it did does not count: the user must be asked about the command itself.
        """
        try:
            self._confinement.require_copyable(context.workspace.root)
        except SandboxError as error:
            raise TrialError(f"it could not be tried: {error}") from error
        place, lock = await asyncio.to_thread(new_place, self._folder)
        try:
            copy, around = await asyncio.to_thread(self._copies.make, context.workspace, place)
            if folder != copy.root and str(folder.relative_to(copy.root)) not in copy.originals:
                raise TrialError("its folder is closed to commands in a trial")
            begun = BegunOutput(output, secrets.token_hex(8))
            words = ("bash", "-c", _WATCHED, *command, begun.mark)
            seen = await asyncio.to_thread(seen_copy, copy, place, around)
            launch = Launch(words, folder, environment_of(environment))
            confined = await asyncio.to_thread(self._confinement.confined_copy, launch, copy.root, seen)
            code = await self._run(confined, copy, begun)
            if not begun.has_begun:
                raise TrialError("it could not be started in a trial")
            if code == _WANTS_NETWORK:
                raise TrialError("it asked for the network")
            if code in _CANNOT_RUN:
                raise TrialError("a program that it needs was not found in a trial")
            found = await asyncio.to_thread(changes_of, copy)
            facts = await asyncio.to_thread(facts_of, copy, found, context.workspace, self._context_files)
            return CommandEffect(code, judge(found.changes, facts), found)
        except (OSError, SandboxError) as error:
            raise TrialError(f"it could not be tried: {error}") from error
        finally:
            await asyncio.shield(asyncio.to_thread(remove, place, lock))

    async def _run(self, launch: Launch, copy: FolderCopy, output: BegunOutput) -> int:
        environment = {**launch.environment, "TERM": "dumb"}
        async with process_group(
            launch.command, launch.folder, environment, output.feed, spares_leader=True, grace_seconds=0
        ) as group:
            ending = asyncio.ensure_future(group.wait())
            least = shutil.disk_usage(copy.place).free - MAXIMUM_WRITTEN_BYTES
            try:
                async with asyncio.timeout(self._seconds):
                    while not ending.done():
                        await asyncio.wait({ending}, timeout=_SECONDS_BETWEEN_LOOKS)
                        if output.size > MAXIMUM_OUTPUT_BYTES or shutil.disk_usage(copy.place).free < least:
                            raise TrialError("it wrote too much for a trial")
            except TimeoutError as error:
                raise TrialError(f"it ran for more than {self._seconds:g} s in a trial") from error
            finally:
                if group.exit_code is None:
                    group.kill()
                    await asyncio.wait({ending}, timeout=_KILLED_SECONDS)
                ending.cancel()
            group.drain()
            return group.exit_code if group.exit_code is not None else -1
