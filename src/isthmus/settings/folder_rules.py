"""All that settings files forbid to the sessions of a folder. Pure."""

from dataclasses import dataclass, field

from isthmus.settings.tool_rules import ToolList, ToolRules


@dataclass(frozen=True, slots=True)
class FolderRules:
    """Rules of a folder on tools, on the approval mode ``yolo`` and on answers that hold for more than one call."""

    tools: ToolRules = field(default_factory=ToolRules)
    yolo_refusal: str | None = None
    keeps_answers: bool = True

    def __or__(self, other: "FolderRules") -> "FolderRules":
        """Return the rules that forbid what either forbids."""
        return FolderRules(
            ToolRules(
                _both(self.tools.excluded, other.tools.excluded),
                _both(self.tools.core, other.tools.core),
                _both(self.tools.confirmed, other.tools.confirmed),
            ),
            self.yolo_refusal or other.yolo_refusal,
            self.keeps_answers and other.keeps_answers,
        )

    def described(self) -> tuple[str, ...]:
        """Return the parts that forbid something or have it asked about, each with where it stands."""
        lists = (*self.tools.excluded, *self.tools.core, *self.tools.confirmed)
        yolo = () if self.yolo_refusal is None else (f"approval mode yolo: {self.yolo_refusal}",)
        kept = () if self.keeps_answers else ("no answer holds for more than one call",)
        return (*(f"{rules.key} of {rules.where}" for rules in lists), *yolo, *kept)


def _both(first: tuple[ToolList, ...], second: tuple[ToolList, ...]) -> tuple[ToolList, ...]:
    return tuple(dict.fromkeys((*first, *second)))
