"""/about: versions, model and modes of this agent."""

from isthmus import __version__
from isthmus.agent.approval.session_policy import policy_for
from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext
from isthmus.development_tool import EXTENSION_URI

NO_WORKSPACE = "none yet"


async def about(context: CommandContext) -> None:
    """Show the version, model, workspace, approval mode, sandbox, and the protocol extension."""
    model = await context.resources.open_model(context.session.choices.model)
    options = context.options
    policy = policy_for(
        options.policy, context.session.settings, options.settings_rule, yolo_refusal=context.tools.yolo_refusal
    )
    # The folders that it opens belong to the local user, so other users do not see them.
    sandbox = options.sandbox.partition(";")[0] if context.session.user else options.sandbox
    await context.say(
        "\n".join(
            (
                f"Isthmus {__version__}",
                f"Model: {model.name} ({model.provider})",
                f"Workspace: {context.workspace if context.known_scope is not None else NO_WORKSPACE}",
                f"Approval mode: {policy.mode}",
                f"Sandbox: {sandbox}",
                f"Extension: development-tool {EXTENSION_URI.rpartition('/')[0].rpartition('/')[2]} ({EXTENSION_URI})",
                f"Session: {context.session.context_id}",
                *(options.unused_settings if not context.session.user else ()),
            )
        )
    )


COMMAND = CommandNode(
    "about", "Show the version, the model, the workspace and the protocol extension", about, needs_folder=False
)
