"""Random command lines, of the kind in which a reader of shell syntax and bash may differ.

Three sources, mixed: a grammar that may inject at every place, mutations of known lines, and splices of two.
"""

import random
import tomllib
from pathlib import Path

_MATERIAL: dict[str, list[str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
BLANKS, COMMANDS, EFFECTS = _MATERIAL["blanks"], _MATERIAL["commands"], _MATERIAL["effects"]
WORDS, OPERATORS, CORPUS = _MATERIAL["words"], _MATERIAL["operators"], _MATERIAL["corpus"]


_AROUND = (
    *('echo "$({})"', "echo $({})", "echo `{}`", "cat <({})"),
    *("({})", "{{ {}; }}", "if {}; then ls; fi", "cat <<E\n{}\nE\n"),
)
"""Places for a whole line."""


class LineGenerator:
    """A generator of lines from one source of randomness."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def line(self) -> str:
        """Return the next line: never empty, never with a NUL character."""
        kind = self._chance.random()
        if kind < 0.3:
            line = self._grammar(2)
        elif kind < 0.85:
            line = self._chance.choice(CORPUS)
            for _ in range(self._chance.choice((1, 1, 1, 2, 2, 3, 4))):
                line = self._mutated(line)
        else:
            line = self._splice(self._known(), self._known())
        return line.replace("\0", "") or "ls"

    def _known(self) -> str:
        return self._chance.choice(CORPUS) if self._chance.random() < 0.8 else self._grammar(1)

    # --- The grammar ------------------------------------------------------------------------------------------------

    def _grammar(self, depth: int) -> str:
        pick = self._chance
        if depth == 0 or pick.random() < 0.3:
            return self._simple(depth)
        first, second = self._grammar(depth - 1), self._grammar(depth - 1)
        match pick.randrange(17):
            case 0:
                return f"{first};{self._blank()}{second}"
            case 1:
                return f"{first}{self._blank()}&&{self._blank()}{second}"
            case 2:
                return f"{first} | {second}"
            case 3:
                return f"{first}\n{second}"
            case 4:
                return f"({first}; {second})"
            case 5:
                return f"{{ {first}; {second}; }}"
            case 6:
                return f"if {first}; then {second}; fi"
            case 7:
                return f"for {pick.choice(('x', 'a', 'b', 'f', 'c'))} in {self._words()}; do {second}; done"
            case 8:
                return f"case {self._word()} in {self._word()}) {first};; *) {second};; esac"
            case 9:
                delimiter = pick.choice(("E", "'E'", '"E"', "\\E", "E", self._word()))
                operator = pick.choice(("<<", "<<", "<<-", "<< ", "<<\\\n"))
                after = pick.choice(
                    ("", "", "", " ", f" {self._word()}", f" | {second}", f"; {second}", " <f", " \\", " #")
                )
                body = pick.choice((second, f"$({second})", self._word(), f"\t{second}", f"{second}\\", self._effect()))
                end = pick.choice(("E", "E", "E", "\tE", "E "))
                return f"{first} {operator}{delimiter}{after}\n{body}\n{end}\n{self._grammar(0)}"
            case 10:
                return f"{first} <({second})"
            case 11:
                return f'{first} "$({second})"'
            case 12:
                return f"{first} `{second}`"
            case 13:
                return f"{first} # {second}\n{second}"
            case 14:
                return f"{first} &{self._blank()}{second}"
            case 15:
                return f"{self._test()} {pick.choice(('&&', '||', ';', '&'))} {second}"
            case _:
                return f"{first} || {second}"

    def _simple(self, depth: int) -> str:
        pick = self._chance
        line = pick.choice(COMMANDS) if pick.random() < 0.85 else self._test()
        for _ in range(pick.choice((0, 0, 1, 1, 2, 3))):
            line += self._blank() + self._word()
        if pick.random() < 0.35:
            line += self._blank() + self._effect()
        if pick.random() < 0.15:
            line += f" {pick.choice(('>/dev/null', '2>&1', '2>/dev/null', '<f', '<<< a', '>&2', '2>&-'))}"
        return line

    def _test(self) -> str:
        pick = self._chance
        opening, closing = pick.choice((("[", "]"), ("[[", "]]"), ("test", ""), ("[", "]")))
        operator = pick.choice(("-f", "-n", "-v", "-R", "-z", "-t", "-o", "!", "! -f", "(", ""))
        middle = pick.choice(("=", "==", "-eq", "-lt", "-nt", "!=", "<", "=~", "-a", "&&", "||", ""))
        operand = pick.choice((self._word, self._effect))
        parts = [opening, operator, operand(), middle, operand() if middle else "", closing]
        return "".join(f"{self._blank()}{part}" if number else part for number, part in enumerate(parts) if part)

    def _blank(self) -> str:
        return " " if self._chance.random() < 0.9 else self._chance.choice(BLANKS)

    def _word(self) -> str:
        return self._chance.choice(WORDS) if self._chance.random() < 0.92 else self._effect()

    def _words(self) -> str:
        return " ".join(self._word() for _ in range(self._chance.choice((1, 1, 2, 3))))

    def _effect(self) -> str:
        return self._chance.choice(EFFECTS)

    # --- Mutations --------------------------------------------------------------------------------------------------

    def _mutated(self, line: str) -> str:
        pick = self._chance
        place = pick.randrange(len(line) + 1)
        match pick.randrange(11):
            case 0 | 1 | 2:
                return line[:place] + pick.choice(OPERATORS) + line[place:]
            case 3:
                return line[:place] + pick.choice(EFFECTS) + line[place:]
            case 4:
                return f"{line[:place]} {pick.choice(EFFECTS)} {line[place:]}"
            case 5:
                return f"{line[:place]} {pick.choice(WORDS)} {line[place:]}"
            case 6:
                return line[:place] + line[place + pick.choice((1, 1, 2, 3)) :]
            case 7:
                places = [index for index, char in enumerate(line) if char in " \n"]
                at = pick.choice(places) if places else place
                return line[:at] + pick.choice(BLANKS) + line[at + 1 :]
            case 8:
                end = pick.randrange(place, len(line) + 1)
                return line[:end] + line[place:end] + line[end:]
            case 9:
                return f"{line}{pick.choice(OPERATORS)}{pick.choice((pick.choice(COMMANDS), pick.choice(EFFECTS)))}"
            case _:
                kind = pick.choice(
                    ('"$({})"', "$({})", "`{}`", "({})", "{{ {}; }}", "<({})", "if {}; then ls; fi", "cat <<E\n{}\nE\n")
                )
                return f"echo {kind.format(line)}" if kind[0] in '"$`<' else kind.format(line)

    def _splice(self, first: str, second: str) -> str:
        start, end = self._chance.randrange(len(first) + 1), self._chance.randrange(len(second) + 1)
        return first[:start] + second[end:]
