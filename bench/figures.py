"""Results of benchmarks: a figure, the peer's in the same run, their ratio, the budget, and whether it is met."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. ``ratio`` is ours divided by the peer's; ``met`` is None where there is no budget."""

    name: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    budget: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """Our value divided by the peer's, or None."""
        return None if not self.peer_value else self.value / self.peer_value


def at_most(name: str, value: float, unit: str, limit: float) -> Figure:
    """Return a figure with an absolute budget."""
    return Figure(name, value, unit, budget=f"<= {limit:g} {unit}", met=value <= limit)


def beside(
    name: str,
    value: float,
    unit: str,
    peer: str,
    peer_value: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    no_budget: str = "",
) -> Figure:
    """Return a figure beside a peer's, with a budget for the ratio if given, otherwise with the reason `no_budget`."""
    ratio = value / peer_value
    if at_most is not None:
        return Figure(name, value, unit, peer, peer_value, f"<= {at_most:.3g}x", ratio <= at_most)
    if at_least is not None:
        return Figure(name, value, unit, peer, peer_value, f">= {at_least:.3g}x", ratio >= at_least)
    return Figure(name, value, unit, peer, peer_value, no_budget)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value below which ``percent`` of the values are; at least one is given."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def table(figures: Sequence[Figure]) -> list[str]:
    """Return the figures in columns."""
    rows = [("", "isthmus", "peer", "", "ratio", "budget", "")]
    for figure in figures:
        ratio = figure.ratio
        rows.append(
            (
                figure.name,
                f"{_number(figure.value)} {figure.unit}",
                "" if figure.peer_value is None else f"{_number(figure.peer_value)} {figure.unit}",
                figure.peer,
                "" if ratio is None else f"{ratio:.2f}x",
                figure.budget,
                {True: "met", False: "MISSED", None: ""}[figure.met],
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = (False, True, True, False, True, False, False)
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"
