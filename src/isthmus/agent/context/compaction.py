"""Compaction: the model's summary replaces the older part of a conversation; the last turns stay whole.

``planned`` decides what is summarised (pure); ``compact`` asks the model and emits Compacted. A tool request is never
separated from its result, and kept messages are unchanged, including the state that their provider wants back. Not
here: how the summary is asked for, see :mod:`isthmus.agent.context.summary`; and when to compact, see
``isthmus.agent.context.keeper`` and the command ``/compress``.
"""

from collections.abc import Sequence

from isthmus.agent.context.summary import write_summary
from isthmus.agent.context.transcript import LONGEST_TEXTS, shorten
from isthmus.agent.session.compacted_sizes import shrinks
from isthmus.agent.session.conversation import SUMMARY_HEADING, SUMMARY_SEEN, is_summary
from isthmus.agent.session.session import Session
from isthmus.agent.session.size import estimate_tokens, message_tokens
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentThought
from isthmus.errors import IsthmusError
from isthmus.events import Thought
from isthmus.internal_events import Compacted
from isthmus.models.port.base import ChatModel, Message, ModelRequest, ModelToolResult, Text, text_of
from isthmus.record import record

KEPT_SHARE = 0.08
"""Maximum share of the conversation's tokens that stays as it is: it is paid for in each later request."""
KEPT_TOKENS = 8_000
"""Tokens that may stay as they are in any case, up to KEPT_SHARE_OF_SMALL: one long file with what was asked of it."""
KEPT_SHARE_OF_SMALL = 0.3
"""Maximum share of a small conversation's tokens that stays as it is."""
LAST_TURN_SHARE = 0.3
"""Share of the conversation's tokens above which a turn under way is itself summarised in part."""
WORTH_SHARE = 0.2
"""Minimum share that an automatic compaction must replace; otherwise every request would compact again."""
FILES_HEADING = "## Files read or changed, the latest first"
MAXIMUM_FILES = 20
"""Maximum number of files that a summary names by itself."""
REQUEST_HEADING = "## The user's request, word for word"
ADDED_HEADING = "### Added to it later, word for word"
REQUEST_SHARE = 0.25
"""Maximum share of the context window for the request in a summary; a longer one loses the middle of its texts."""
CHARACTERS_OF_A_TOKEN = 4
_EARLIER_REQUEST_HEADING = "## The person's request, word for word"
"""The heading in summaries of earlier versions, whose sessions continue after an upgrade."""


class NotCompactedError(IsthmusError):
    """Compaction that left the conversation unchanged; the text gives the user the reason."""


@record
class CompactionPlan:
    """Plan to summarise the first ``cut`` messages and keep the others. Sizes are estimates in tokens."""

    cut: int
    replaced_tokens: int
    kept_tokens: int


def planned(messages: Sequence[Message], *, is_worth_it: float = 0.0) -> CompactionPlan | None:
    """Return the part of a conversation to summarise; None if there is nothing to gain.

    The last turns stay, up to a share of the conversation and at least one. If the last turn is still under way and a
    large part of the conversation, it is cut between a tool result and the model's next message. ``is_worth_it`` is
    the minimum share to replace.
    """
    sizes = [message_tokens(message) for message in messages]
    total = sum(sizes)
    tails = [0] * (len(messages) + 1)
    for at in range(len(messages) - 1, -1, -1):
        tails[at] = tails[at + 1] + sizes[at]
    prompts = [at for at, message in enumerate(messages) if at and _begins_a_turn(message)]
    # Within a turn under way: before a message of the model, since the results of its requests follow it.
    goes_on = bool(messages) and messages[-1].role == "user"
    since = prompts[-1] if prompts else 0
    inside = [at for at in range(since + 2, len(messages)) if messages[at].role == "assistant" and goes_on]
    most = min(total * KEPT_SHARE_OF_SMALL, max(total * KEPT_SHARE, KEPT_TOKENS))
    cut = next((at for at in prompts if tails[at] <= most), None)
    if cut is None and prompts and (not goes_on or tails[prompts[-1]] <= total * LAST_TURN_SHARE):
        cut = prompts[-1]
    if cut is None:
        cut = next((at for at in inside if tails[at] <= most), None)
    if cut is None:
        cut = inside[-1] if inside else prompts[-1] if prompts else None
    if cut is None or (cut == 2 and is_summary(messages[0])):
        return None
    replaced = total - tails[cut]
    return CompactionPlan(cut, replaced, tails[cut]) if replaced > total * is_worth_it else None


async def compact(
    turn: AgentTurn, model: ChatModel, window: int, request: ModelRequest | None = None, *, is_worth_it: float = 0.0
) -> Compacted:
    """Have the older part of the session's conversation summarised, emit that, and return it.

    Emits notices of retries, Compacted, and a thought about it. After a crash it can simply be called again, since
    nothing changes before the end.

    Args:
        turn: the turn of the session.
        model: the author of the summary.
        window: the model's context window in tokens.
        request: the session's next request to that model, if the provider may have cached its beginning.
        is_worth_it: minimum share of the conversation to replace.

    Raises:
        NotCompactedError: there is nothing to gain, or the model gave no usable summary.
        ModelError: the model cannot be asked.
    """
    session = turn.session
    plan = planned(session.messages, is_worth_it=is_worth_it)
    if plan is None:
        raise NotCompactedError(
            "There is nothing to compact: the conversation consists of its last turn or of a summary."
        )
    written = await write_summary(turn, model, request, session.messages[: plan.cut], window)
    if not (text := written.text):
        raise NotCompactedError(f"The conversation stays as it is: {model.name} wrote no summary.")
    summary = _with_request(text, session, plan.cut, window)
    size = estimate_tokens(summary) + message_tokens(SUMMARY_SEEN)
    estimated = plan.replaced_tokens + plan.kept_tokens
    if not shrinks(estimated, plan.replaced_tokens, size):
        raise NotCompactedError(
            f"The conversation stays as it is: its summary of about {size:,} tokens would be hardly smaller than the"
            f" {plan.replaced_tokens:,} that it would replace, of {estimated:,}."
        )
    before = max(session.conversation.tokens or 0, estimated)
    # The measured tokens beyond the messages are the system prompt and the tools.
    after = before - estimated + plan.kept_tokens + size
    kept = len(session.messages) - plan.cut
    usage = written.usage
    compacted = Compacted(
        *(summary, kept, before, after),
        *(usage.input, usage.output, usage.cached, usage.thoughts),
        model=model.name,
        cost=usage.cost,
    )
    about = (
        f"Its older part is now a summary: about {after:,} tokens instead of {before:,}. The last turns are unchanged."
    )
    await turn.emit(compacted, Thought(AgentThought("Conversation compacted", about)))
    return compacted


def _begins_a_turn(message: Message) -> bool:
    """Return whether a message is the user's and does not answer a tool request."""
    return message.role == "user" and not any(isinstance(part, ModelToolResult) for part in message.parts)


def _with_request(text: str, session: Session, cut: int, window: int) -> str:
    """Return the summary with its heading, and with what the user asked in the turn and is not in the kept messages."""
    messages = session.messages
    text += _files_section(session)
    kept = {part.text for message in messages[cut:] for part in message.parts if isinstance(part, Text)}
    asked = [request for request in session.requests if request not in kept]
    if not session.requests and messages[cut].role != "user":
        asked = _earlier_request(messages[:cut])
    if not asked:
        return f"{SUMMARY_HEADING}\n\n{text}"
    limit = max(LONGEST_TEXTS[0], int(window * REQUEST_SHARE * CHARACTERS_OF_A_TOKEN))
    if sum(map(len, asked)) > limit:
        asked = [shorten(request, limit // len(asked)) for request in asked]
    first, *more = (request.strip() for request in asked)
    added = "".join(f"\n\n{ADDED_HEADING}\n{request}" for request in more)
    return f"{SUMMARY_HEADING}\n\n{text}\n\n{REQUEST_HEADING}\n{first}{added}"


def _files_section(session: Session) -> str:
    """Return the section with the files that the work is about; empty without any."""
    paths = session.conversation.known_files.latest[:MAXIMUM_FILES]
    if not paths:
        return ""
    folder = f"{session.workspace.rstrip('/')}/" if session.workspace else ""
    return "\n".join(["\n", FILES_HEADING, *(f"- {path.removeprefix(folder)}" for path in paths)])


def _earlier_request(messages: Sequence[Message]) -> list[str]:
    """Return the request at the end of a summary, for sessions whose turn an earlier version has cut."""
    prompts = [message for message in messages if message.role == "user" and text_of(message)]
    if not prompts or not is_summary(prompts[-1]):
        return []
    whole = text_of(prompts[-1]).replace(_EARLIER_REQUEST_HEADING, REQUEST_HEADING)
    asked = whole.partition(REQUEST_HEADING)[2].strip()
    return [asked] if asked else []
