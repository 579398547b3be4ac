"""Options of a session that a client can show and set: the approval mode and the model. Pure.

Version 1 has modes twice: as ``modes`` for older clients, and as an option for others.
"""

from dataclasses import dataclass, replace

from isthmus.acp.v1.sessions import ConfigOption, ConfigValue, SelectOption, SessionMode, SessionModeState
from isthmus.encoding.codec import JsonObject
from isthmus.rpc.messages import INVALID_PARAMS, RpcError

MODE = "mode"
MODEL = "model"
MAXIMUM_CHARACTERS = 200
"""Maximum length of a model's name."""

_SETTING = "approval_mode"
_MODES = (
    SessionMode("default", "Default", "Asks before it edits files or runs commands"),
    SessionMode("auto_edit", "Auto edit", "Edits files without asking; asks before commands"),
    SessionMode("plan", "Plan", "Only reads"),
    SessionMode("yolo", "YOLO", "Never asks"),
)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Present values; ``models`` are names to choose from, ``chosen`` the options that the client has set.

    ``has_modes``: the agent has our approval modes, not some of its own.
    """

    mode: str = "default"
    model: str = ""
    models: tuple[str, ...] = ()
    chosen: frozenset[str] = frozenset()
    has_modes: bool = True

    def with_mode(self, mode_id: str) -> "SessionOptions":
        """Return the options with another mode.

        Raises:
            RpcError: there is no such mode.
        """
        known = [mode.id for mode in _MODES] if self.has_modes else []
        if mode_id not in known:
            expected = f"one of {', '.join(known)}" if known else "none: the modes of this agent are not known here"
            raise RpcError(INVALID_PARAMS, f"modeId: expected {expected}, received {mode_id[:100]!r}")
        return replace(self, mode=mode_id, chosen=self.chosen | {MODE})

    def of_reopened(self, settings: JsonObject) -> "SessionOptions":
        """Return the options of a session that another client may have changed, so that what is shown is what holds.

        ``settings`` are the AgentSettings of its prompts as far as they are known. From now on the mode is stated in
        each prompt; a mode that is not known is the present one.
        """
        if MODE in self.chosen or not self.has_modes:
            return self
        found = next((mode.id for mode in _MODES if mode.id == settings.get(_SETTING)), self.mode)
        return self.with_mode(found)

    def with_value(self, config_id: str, value: object) -> "SessionOptions":
        """Return the options with another value of one of them; any name of a model is taken.

        Raises:
            RpcError: there is no such option, or it has no such value.
        """
        if not isinstance(value, str) or not 0 < len(value) <= MAXIMUM_CHARACTERS:
            raise RpcError(INVALID_PARAMS, f"value: expected a string of 1 to {MAXIMUM_CHARACTERS} characters")
        match config_id:
            case "mode":
                return self.with_mode(value)
            case "model":
                return replace(self, model=value, chosen=self.chosen | {MODEL})
            case _:
                raise RpcError(INVALID_PARAMS, f"configId: expected mode or model, received {config_id[:100]!r}")

    @property
    def modes(self) -> SessionModeState | None:
        """Modes for clients that do not know options."""
        return SessionModeState(self.mode, _MODES) if self.has_modes else None

    @property
    def config_options(self) -> tuple[ConfigOption, ...]:
        """All options."""
        options: list[ConfigOption] = []
        if self.has_modes:
            modes = tuple(ConfigValue(mode.id, mode.name, mode.description) for mode in _MODES)
            options.append(SelectOption(MODE, "Mode", self.mode, modes, "What is asked before it happens", MODE))
        if self.model:
            names = dict.fromkeys((self.model, *self.models))
            values = tuple(ConfigValue(name, name) for name in names)
            options.append(SelectOption(MODEL, "Model", self.model, values, category=MODEL))
        return tuple(options)

    @property
    def settings(self) -> JsonObject:
        """AgentSettings for the values that the client has set."""
        values = {MODE: (_SETTING, self.mode), MODEL: ("model", self.model)}
        return dict(values[name] for name in sorted(self.chosen))
