"""/chat: saves the conversation under a name, goes on from a saved one, and writes it into a file to share.

A saved chat is a copy of the model's messages in the journal, per user and workspace. Files are not part of it, see
/restore.
"""

import time
from collections.abc import Sequence

from isthmus.agent.commands.builtin.chat_transcript import prompt_of, transcript
from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import (
    CommandContext,
    CommandError,
    CommandRefusedError,
    ToolInvocation,
    error_of,
)
from isthmus.development_tool import ToolCallStatus
from isthmus.internal_events import ChatResumed
from isthmus.journal.port.saved_chats import ChatPlace, ChatStore, SavedChat
from isthmus.models.port.base import Message, text_of
from isthmus.models.port.message import message_from_json, message_to_json
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line, with_ellipsis

MAXIMUM_NAME = 100
"""Maximum number of characters of a chat's name."""
MAXIMUM_TITLE = 200
"""Maximum number of characters of the first prompt that are kept as the title."""
SHOWN_CHARACTERS = 2_000
"""Maximum number of characters of a message that is shown again."""
_NAME = argument("name", "The name of the chat", is_required=True)


async def save(context: CommandContext) -> None:
    """Save the conversation as it is now."""
    await _save(context, _named(context.args), context.session.messages)


async def fork(context: CommandContext) -> None:
    """Save the conversation as it was at the end of an earlier task of the session."""
    task_id, _, name = context.args.strip().partition(" ")
    ends = context.session.conversation.ends
    found = [known for known in ends if known == task_id] or [known for known in ends if known.startswith(task_id)]
    if len(found) != 1:
        reason = "several earlier tasks whose ids begin with" if found else "no earlier task"
        raise CommandError(
            f"This session has {reason} {visible_line(task_id)[:100]!r}; /tasks lists its tasks.", "unknown_task"
        )
    messages, length = ends[found[0]]
    await _save(context, _named(name), messages[:length])


async def _save(context: CommandContext, name: str, messages: Sequence[Message]) -> None:
    chats = _chats(context)
    if not messages:
        raise CommandError("There is no conversation to save yet.", "no_conversation")
    title = with_ellipsis(visible_line(" ".join(prompt_of(messages[0]).split())), MAXIMUM_TITLE)
    chat = SavedChat(name, title, len(messages), context.session.task_id)
    other = await chats.save(_place(context), chat, [message_to_json(message) for message in messages])
    if other is not None:
        raise CommandError(
            f"There is a chat named {name!r} already, saved {_when(other)}. Choose another name, or run"
            f" /chat delete {name} first.",
            "chat_exists",
        )
    await context.say(
        f"Saved the conversation ({show_count(len(messages), 'message')}). To go on from it: /chat resume {name}"
    )


async def list_chats(context: CommandContext) -> None:
    """List the chats that were saved in this folder."""
    found = await _chats(context).chats(_place(context))
    if not found:
        await context.say("There are no saved chats in this folder. /chat save NAME saves this conversation.")
        return
    widest = max(len(chat.name) for chat in found)
    lines = [f"{chat.name:<{widest}}  {_about(chat)}" for chat in found]
    await context.say("Saved chats, newest first:\n" + "\n".join(lines))


async def resume(context: CommandContext) -> None:
    """Replace the conversation of this session by a saved one."""
    name = _named(context.args)
    saved = await _chats(context).messages(_place(context), name)
    if saved is None:
        raise await _unknown(context, name)
    await context.turn.emit(ChatResumed(name, saved))
    messages = [message_from_json(message) for message in saved]
    await context.say(
        "\n\n".join(
            (
                f"The model goes on from the chat {name!r} ({show_count(len(messages), 'message')}). What was said in"
                " this session before is not part of it. Files are unchanged.",
                *_last(messages),
            )
        )
    )


async def delete(context: CommandContext) -> None:
    """Delete a saved chat."""
    name = _named(context.args)
    # After a crash the command runs again: it has said before that it deletes the chat.
    if not context.session.command_texts and await _chats(context).messages(_place(context), name) is None:
        raise await _unknown(context, name)
    await context.say(f"Deleted the chat {name!r}.")
    await _chats(context).delete(_place(context), name)


async def share(context: CommandContext) -> None:
    """Write the conversation into a Markdown file, which the approval policy decides on."""
    if not context.session.messages:
        raise CommandError("There is no conversation to share yet.", "no_conversation")
    if (writer := context.tools.tools.get("write_file")) is None:
        raise CommandError("The tool write_file, which would write the file, is not available here.", "not_permitted")
    file = context.args.strip() or f"conversation-{context.session.context_id[:8]}.md"
    arguments = {"file_path": file, "content": transcript(context.session.messages)}
    (call,) = await context.call(ToolInvocation(writer, arguments))
    if call.status is ToolCallStatus.CANCELLED:
        await context.say("Nothing was written.")
        raise CommandRefusedError
    if call.status is not ToolCallStatus.SUCCEEDED:
        raise error_of(call, "Nothing was written.", "not_written")
    await context.say(f"Wrote the conversation to {visible_line(file)}. Read it before you pass it on.")


def _chats(context: CommandContext) -> ChatStore:
    if context.resources.chats is None:
        raise CommandError("This agent keeps no chats.", "no_chats")
    return context.resources.chats


def _place(context: CommandContext) -> ChatPlace:
    return ChatPlace(context.session.user, str(context.workspace))


def _named(text: str) -> str:
    name = text.strip()
    if not name or len(name) > MAXIMUM_NAME or visible_line(name) != name:
        raise CommandError(
            f"Expected a name of up to {MAXIMUM_NAME} printable characters in one line,"
            f" received {with_ellipsis(visible_line(name), MAXIMUM_NAME)!r}.",
            "unusable_name",
        )
    return name


async def _unknown(context: CommandContext, name: str) -> CommandError:
    known = [chat.name for chat in await _chats(context).chats(_place(context))]
    advice = f"Saved chats: {', '.join(known[:20])}" if known else "There are no saved chats in this folder"
    return CommandError(f"There is no chat named {name!r}. {advice}.", "unknown_chat")


def _when(chat: SavedChat) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(chat.saved_at))


def _about(chat: SavedChat) -> str:
    return f"{_when(chat)}  {show_count(chat.messages, 'message')}  {chat.title}".rstrip()


def _last(messages: Sequence[Message]) -> Sequence[str]:
    """Return the last prompt as a quotation, and the last answer, as far as the conversation has them."""
    prompt = next(
        (text for message in reversed(messages) if message.role == "user" and (text := prompt_of(message))), ""
    )
    answer = next(
        (text for message in reversed(messages) if message.role == "assistant" and (text := text_of(message))), ""
    )
    quotation = "\n".join(f"> {line}" for line in _shown(prompt).splitlines())
    return [text for text in (quotation, _shown(answer)) if text]


def _shown(text: str) -> str:
    return with_ellipsis(text.strip(), SHOWN_CHARACTERS)


async def _complete(context: CompletionContext, args: str) -> Sequence[ArgumentCompletion]:
    chats, scope = context.resources.chats, context.scope
    if chats is None:
        return ()
    found = await chats.chats(ChatPlace(scope.user, str(scope.workspace)))
    return [ArgumentCompletion(chat.name, _about(chat)) for chat in found if args.lower() in chat.name.lower()]


COMMAND = CommandNode(
    "chat",
    "Save this conversation, or go on from a saved one",
    sub_commands=(
        CommandNode("save", "Save this conversation under a name", save, (_NAME,)),
        CommandNode(
            "fork",
            "Save this conversation as it was at the end of an earlier task",
            fork,
            (argument("task", "The id of the task, or its beginning, as /tasks lists it", is_required=True), _NAME),
        ),
        CommandNode("list", "List the chats that were saved in this folder", list_chats),
        CommandNode(
            "resume", "Go on from a saved chat, in place of this conversation", resume, (_NAME,), complete=_complete
        ),
        CommandNode("delete", "Delete a saved chat", delete, (_NAME,), complete=_complete),
        CommandNode(
            "share",
            "Write this conversation into a Markdown file",
            share,
            (argument("file", "The file, in the workspace"),),
        ),
    ),
)
