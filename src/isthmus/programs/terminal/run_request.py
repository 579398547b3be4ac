"""The request of one start of the program: a conversation, one prompt without a user, or a list of sessions. Pure."""

from collections.abc import Sequence
from pathlib import Path

from isthmus.fronts.session_names import LATEST
from isthmus.programs.setup.setup import BadInputError
from isthmus.record import record


@record
class GivenRequest:
    """The request as it was given on the command line; None, empty or False where nothing was.

    ``words`` are the arguments that are the words of a prompt. ``continues`` is ``--continue``. ``worktree`` is the
    name in ``--worktree NAME``, empty for an option without a name.
    """

    prompt: str | None = None
    prompt_interactive: str | None = None
    words: tuple[str, ...] = ()
    output_format: str = "text"
    resume: str | None = None
    continues: bool = False
    list_sessions: bool = False
    output_schema: Path | None = None
    input_format: str = "text"
    worktree: str | None = None


@record
class RunRequest:
    """A request whose parts fit together.

    ``prompt`` is run without a user; standard input may have the rest of it, or all. With ``takes_messages`` it has the
    prompts, as lines of JSON. ``first_prompt`` begins a
    conversation. ``output_schema`` is a file with the schema of the answer. ``resume`` is ``latest`` or the id of a
    session. ``worktree`` is the name of the worktree to work in; empty for a new one, None for none.
    """

    is_headless: bool
    prompt: str | None
    first_prompt: str | None
    output_format: str
    resume: str | None
    list_sessions: bool
    output_schema: Path | None = None
    takes_messages: bool = False
    worktree: str | None = None


def run_request(given: GivenRequest, *, is_typed: bool) -> RunRequest:
    """Return the request; ``is_typed`` is whether standard input is a terminal.

    Raises:
        BadInputError: options contradict each other.
    """
    words = " ".join(given.words) if given.words else None
    prompts = {"a prompt": words, "--prompt": given.prompt, "--prompt-interactive": given.prompt_interactive}
    named = [name for name, text in prompts.items() if text is not None]
    if len(named) > 1:
        raise BadInputError(f"{' and '.join(named)} cannot be used together; give one of them")
    if given.continues and given.resume is not None:
        raise BadInputError("--continue and --resume cannot be used together; --continue is --resume latest")
    resume = LATEST if given.continues else given.resume
    if given.input_format == "stream-json":
        return _message_request(given, named, resume)
    if given.list_sessions:
        if named or resume is not None:
            raise BadInputError("--list-sessions cannot be used with a prompt, --resume or --continue")
        if given.worktree is not None:
            raise BadInputError("--list-sessions cannot be used with --worktree; list them in the worktree's folder")
        return RunRequest(False, None, None, given.output_format, None, True)
    # Only a run without a user has an output in a format, or an input that is a pipe.
    is_headless_prompt = words is not None and (not is_typed or given.output_format != "text")
    prompt = words if is_headless_prompt else given.prompt
    first_prompt = given.prompt_interactive if words is None or is_headless_prompt else words
    if given.prompt_interactive is not None and not is_typed:
        raise BadInputError("--prompt-interactive needs a terminal as standard input; use --prompt")
    is_headless = prompt is not None or not is_typed
    if given.output_format != "text" and not is_headless:
        raise BadInputError("--output-format needs a prompt: give one as an argument, with -p or on standard input")
    if given.output_schema is not None and not is_headless:
        raise BadInputError("--output-schema needs a prompt: give one as an argument, with -p or on standard input")
    schema, worktree = given.output_schema, given.worktree
    return RunRequest(is_headless, prompt, first_prompt, given.output_format, resume, False, schema, worktree=worktree)


def _message_request(given: GivenRequest, named: Sequence[str], resume: str | None) -> RunRequest:
    if named or given.list_sessions:
        other = named[0] if named else "--list-sessions"
        raise BadInputError(f"--input-format stream-json takes its prompts from standard input; leave out {other}")
    if given.output_format != "stream-json":
        raise BadInputError("--input-format stream-json needs --output-format stream-json")
    return RunRequest(
        True,
        None,
        None,
        given.output_format,
        resume,
        False,
        given.output_schema,
        takes_messages=True,
        worktree=given.worktree,
    )
