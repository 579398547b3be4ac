"""The file that the user asked for by a command (/init): where nobody can be asked, it is an edit like others.

Its content is the model's, so whoever can be asked is shown it. Only a text that instructs agents can be such a file,
directly in the session's folder: no name that a project chose makes an edit of what other programs run.
"""

from pathlib import Path

from isthmus.agent.session import Session


def is_requested(session: Session, file_path: str) -> bool:
    """Return whether the user asked for just this file by the command that the session's task runs."""
    path = Path(file_path)
    return (
        file_path == session.requested_file != ""
        and path.parent == Path(session.workspace)
        and path.suffix.lower() == ".md"
    )
