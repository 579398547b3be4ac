"""Services that the calls of a turn use besides their tools."""

from isthmus.agent.calls.execution import BeforeEdit
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.hooks.tool_hooks import HookPrograms
from isthmus.agent.resources import ModelSource
from isthmus.checkpoints.base import Checkpoints
from isthmus.record import record


@record
class CallServices:
    """Services that calls use besides their tools.

    Attributes:
        checkpoints: stores files before an edit; None to edit without.
        suspended: keeps calls that ask a question while they run; None for calls that cannot.
        open_model: opens the model for calls that ask one.
        before_edit: called with each file that is about to be edited.
        hook_programs: runs the hooks of the settings; None to run none.
    """

    checkpoints: Checkpoints | None = None
    suspended: SuspendedCalls | None = None
    open_model: ModelSource | None = None
    before_edit: BeforeEdit | None = None
    hook_programs: HookPrograms | None = None


NO_SERVICES = CallServices()
"""No services: calls edit without checkpoints, and no hooks run."""
