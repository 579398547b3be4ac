"""The sandbox around shell commands: what every command of a session is confined to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from isthmus.sandbox.confinement import Confinement, Launch, environment_of
from isthmus.sandbox.policy import SandboxError, SandboxPolicy
from isthmus.tools.base import ToolContext
from isthmus.tools.failure import ToolFailure


@dataclass(frozen=True, slots=True)
class ShellSandbox:
    """How shell commands are confined: to their workspace, and to what the user's settings open."""

    confinement: Confinement
    policy: SandboxPolicy

    def note(self) -> str:
        """What the model has to know of it."""
        network = "the network can be used" if self.policy.has_network else "there is no network"
        writable = "".join(f", {path.path}" for path in self.policy.paths if path.is_writable)
        return (
            f" Commands run in a sandbox: only the workspace{writable} can be changed, {network}, most of the home"
            " folder cannot be seen, and /tmp and the home folder are empty ones of each command's own, gone at its"
            " end. What fails for that reason cannot be got around: say so instead."
        )

    def launch(self, command: Sequence[str], folder: Path, environment: dict[str, str], context: ToolContext) -> Launch:
        """Return the command in the sandbox; it may read the outputs that were too long to show. For a thread.

        Raises:
            ToolFailure: it cannot be confined as the settings say, so it is not run.
        """
        wanted = Launch(tuple(command), folder, environment_of(environment))
        try:
            found = self.confinement.confined(
                wanted,
                self.policy,
                context.workspace.root,
                surrounding=environment,
                readable=(context.output_folder,),
            )
        except SandboxError as error:
            raise ToolFailure(f"tools.sandbox: {error}; nothing was run", "shell_execute_error") from error
        return replace(found, environment={**found.environment, "TERM": "dumb"})
