"""/model: shows the model, or chooses another one for the rest of the session."""

from isthmus.agent.commands.base import CommandNode, argument
from isthmus.agent.commands.context import CommandContext
from isthmus.events import ModelChosen


async def model(context: CommandContext) -> None:
    """Show the model; with a name, switch to that model."""
    name = context.args.strip()
    chosen = await context.resources.open_model(name or context.session.model)
    if not name:
        await context.say(f"Model: {chosen.name} ({chosen.provider}). /model NAME switches to another one.")
        return
    await context.emit(ModelChosen(name))
    await context.say(f"This session continues with {chosen.name} ({chosen.provider}).")


COMMAND = CommandNode(
    "model",
    "Show the model, or choose another one for this session",
    model,
    (argument("name", "As in --model: gemini:NAME, anthropic:NAME, openai:NAME, ollama:NAME, or a bare name"),),
)
