"""The sandbox in which all shell commands of a session run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from isthmus.record import record
from isthmus.sandbox.confinement import Confinement, Launch, environment_of
from isthmus.sandbox.policy import OpenPath, SandboxError, SandboxPolicy
from isthmus.tools.port.base import ToolContext
from isthmus.tools.port.failure import ToolFailure


@record
class ShellSandbox:
    """Confinement of shell commands to their workspace and to what the user's settings permit."""

    confinement: Confinement
    policy: SandboxPolicy

    def note(self) -> str:
        """Return a note about the sandbox for the model."""
        network = "the network can be used" if self.policy.has_network else "there is no network"
        writable = "".join(f", {path.path}" for path in self.policy.paths if path.is_writable)
        return (
            f" Commands run in a sandbox: only the workspace{writable} can be changed, {network}, most of the home"
            " folder is not visible, and each command has its own empty /tmp and home folder, deleted when it ends."
            " Files with which programs outside start others (.git/hooks, .vscode, .envrc, .mcp.json and the like)"
            " cannot be made or changed."
            " If a command fails because of this, do not try to work around it: say so instead."
        )

    def launch(self, command: Sequence[str], folder: Path, environment: dict[str, str], context: ToolContext) -> Launch:
        """Return the sandboxed command, which may read the kept outputs of the task. Blocks; call it in a thread.

        Raises:
            ToolFailure: the command cannot be confined as the settings require, so it is not run.
        """
        launch = Launch(tuple(command), folder, environment_of(environment))
        try:
            included = tuple(OpenPath(str(folder), is_writable=True) for folder in context.workspace.others)
            found = self.confinement.confined(
                launch,
                replace(self.policy, paths=(*self.policy.paths, *included)),
                context.workspace.root,
                surrounding=environment,
                readable=(context.output_folder,),
            )
        except SandboxError as error:
            raise ToolFailure(f"tools.sandbox: {error}; nothing was run", "shell_execute_error") from error
        return replace(found, environment={**found.environment, "TERM": "dumb"})
