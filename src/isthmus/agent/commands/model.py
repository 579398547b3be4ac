"""/model: which model answers, and another one for the rest of the session."""

from isthmus.agent.commands.base import CommandNode, argument
from isthmus.agent.commands.context import CommandContext
from isthmus.events import ModelChosen


async def model(context: CommandContext) -> None:
    """Show the model; with a name, open that one and go on with it."""
    name = context.args.strip()
    chosen = await context.resources.open_model(name or context.session.model)
    if not name:
        await context.say(f"Model: {chosen.name} ({chosen.provider}). /model NAME goes on with another one.")
        return
    await context.emit(ModelChosen(name))
    await context.say(f"This session goes on with {chosen.name} ({chosen.provider}).")


COMMAND = CommandNode(
    "model",
    "Show the model, or choose another one for this session",
    model,
    (argument("name", "As in --model: gemini:NAME, anthropic:NAME, openai:NAME, ollama:NAME, or a bare name"),),
)
