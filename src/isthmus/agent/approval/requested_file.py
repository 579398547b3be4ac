"""The file that the user requested by a command (/init): without a user to ask, its edit counts as an ordinary one.

The model writes its content, so a user who can be asked sees it first. Only a Markdown file directly in the session's
folder qualifies, so that no name chosen by a project allows an edit of a file that other programs run.
"""

from pathlib import Path

from isthmus.agent.session.session import Session


def is_requested(session: Session, file_path: str) -> bool:
    """Return whether the user requested exactly this file, by the command that the session's task runs."""
    path = Path(file_path)
    return (
        file_path == session.requested_file != ""
        and path.parent == Path(session.workspace)
        and path.suffix.lower() == ".md"
    )
