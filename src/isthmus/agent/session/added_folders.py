"""Further folders of a session, by those who have added them: a client names its own anew, the user's stay."""

from isthmus.record import record


@record
class AddedFolders:
    """Further folders of a session, as absolute paths: those of the user's command, and those in its AgentSettings."""

    by_user: tuple[str, ...] = ()
    by_client: tuple[str, ...] = ()


NO_FOLDERS = AddedFolders()
