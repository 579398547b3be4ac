"""Options of a session that a client can show and set: the approval mode, the model and its effort. Pure.

Version 1 has modes twice: as ``modes`` for older clients, and as an option for others.
"""

from dataclasses import replace

from isthmus.acp.v1.sessions import ConfigOption, ConfigValue, SelectOption, SessionMode, SessionModeState
from isthmus.encoding.codec import JsonObject
from isthmus.record import record
from isthmus.rpc.messages import INVALID_PARAMS, RpcError

MODE = "mode"
MODEL = "model"
EFFORT = "effort"
MAXIMUM_CHARACTERS = 200
"""Maximum length of a model's name."""

SETTING = "approval_mode"
"""Key of the mode in AgentSettings."""
_DEFAULT = ConfigValue("default", "Default", "As the settings, or else the provider, decide")
_TITLES = {"xhigh": "Extra high", "max": "Maximum"}
_MODES = (
    SessionMode("default", "Default", "Asks before it edits files or runs commands"),
    SessionMode("auto_edit", "Auto edit", "Edits files without asking; asks before commands"),
    SessionMode("plan", "Plan", "Only reads"),
    SessionMode("yolo", "YOLO", "Never asks"),
)


@record
class SessionOptions:
    """Present values; ``models`` are names to choose from, ``chosen`` the options that the client has set.

    ``has_modes``: the agent has our approval modes, not some of its own. ``is_elsewhere``: it is behind a server, whose
    settings may change. ``effort`` is empty where it cannot be chosen, ``levels`` has the efforts of the agent's model.
    ``states_mode``: each prompt states the mode that is shown.
    """

    mode: str = "default"
    model: str = ""
    models: tuple[str, ...] = ()
    effort: str = ""
    levels: tuple[str, ...] = ("low", "medium", "high")
    chosen: frozenset[str] = frozenset()
    has_modes: bool = True
    is_elsewhere: bool = False
    states_mode: bool = False

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

    def in_force(self, mode_id: object, *, is_new: bool) -> "SessionOptions":
        """Return the options with the mode that is in force, unless the client has chosen one.

        A mode that is not known is the present one. Another client may change the mode of a session that is not new,
        and a server its own: from now on it is stated in each prompt, so that what is shown is what holds.
        """
        if MODE in self.chosen or not self.has_modes:
            return self
        found = next((mode.id for mode in _MODES if mode.id == mode_id), self.mode)
        return replace(self, mode=found, states_mode=self.states_mode or self.is_elsewhere or not is_new)

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
            case "effort" if self.effort:
                known = [item.value for item in self._efforts]
                if value not in known:
                    raise RpcError(INVALID_PARAMS, f"value: expected one of {', '.join(known)}, received {value!r}")
                return replace(self, effort=value, chosen=self.chosen | {EFFORT})
            case _:
                expected = "mode, model or effort" if self.effort else "mode or model"
                raise RpcError(INVALID_PARAMS, f"configId: expected {expected}, received {config_id[:100]!r}")

    def with_known_effort(self, effort: str | None, levels: tuple[str, ...] = ()) -> "SessionOptions":
        """Return the options with the effort that is in force, unless the client has chosen one or none is known.

        ``levels`` are the efforts of the session's model; empty if they are not known.
        """
        if levels and self.effort:
            return replace(self, levels=levels).with_known_effort(effort)
        is_known = effort in [item.value for item in self._efforts]
        if effort is None or not is_known or not self.effort or EFFORT in self.chosen:
            return self
        return replace(self, effort=effort)

    @property
    def _efforts(self) -> tuple[ConfigValue, ...]:
        return (_DEFAULT, *(ConfigValue(level, _TITLES.get(level, level.capitalize())) for level in self.levels))

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
            about = "Another model reads the conversation anew, without a prompt cache"
            options.append(SelectOption(MODEL, "Model", self.model, values, about, MODEL))
        if self.effort:
            about = "How much the model thinks before it answers, if it thinks at all"
            options.append(SelectOption(EFFORT, "Effort", self.effort, self._efforts, about, "thought_level"))
        return tuple(options)

    @property
    def settings(self) -> JsonObject:
        """AgentSettings for the values that the client has set, and for the mode if it is stated."""
        values = {MODE: (SETTING, self.mode), MODEL: ("model", self.model), EFFORT: ("effort", self.effort)}
        stated = self.chosen | {MODE} if self.states_mode else self.chosen
        return dict(values[name] for name in sorted(stated))
