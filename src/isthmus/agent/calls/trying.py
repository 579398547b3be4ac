"""The question about a command that was tried in a copy of its folder. Pure."""

from dataclasses import replace

from isthmus.agent.approval.grants import PROCEED_ONCE
from isthmus.development_tool import ConfirmationDetails, ConfirmationOption, ExecuteDetails

_APPLY = "Allow these changes"
_COVERED = "They are applied as shown, if the folder is still as it was; the command is not run again"


def is_harmless(proposal: ConfirmationDetails | None) -> bool:
    """Return whether a tried command did nothing about which a user is asked, so that what it did may be applied."""
    trial = proposal.trial if isinstance(proposal, ExecuteDetails) else None
    return trial is not None and bool(trial.id) and not trial.changes


def without_trial(proposal: ConfirmationDetails | None) -> ConfirmationDetails | None:
    """Return the proposal of a call that runs by another permission than the answer to its own question."""
    return replace(proposal, trial=None) if isinstance(proposal, ExecuteDetails) else proposal


def options_for(
    options: tuple[ConfirmationOption, ...], proposal: ConfirmationDetails | None
) -> tuple[ConfirmationOption, ...]:
    """Return the options of a question, with the words of a yes to the changes of a tried command."""
    trial = proposal.trial if isinstance(proposal, ExecuteDetails) else None
    if trial is None or not trial.id:
        return options
    return tuple(
        replace(option, name=_APPLY, description=_COVERED) if option.id == PROCEED_ONCE else option
        for option in options
    )
