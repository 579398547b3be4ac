"""Rules for the syntax of a shell command, which refuse a command that bash might read differently from the parser.

Each rule is a positive check of the whole command: it returns True if both certainly agree. The user is asked about a
command that a rule refuses. tests/fuzz/test_shell_policy.py checks the rules, together and one by one, against a real
bash.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from isthmus.agent.approval.shell_syntax import Extent, ShellWord, Syntax, literal, text_of, word_of

if TYPE_CHECKING:
    from tree_sitter import Node

Rule: TypeAlias = Callable[[Syntax], bool]

_GAP = re.compile(rb"[ \t\n]*|(?:\\\n)*[ \t](?:[ \t]|\\\n)*")
"""Bytes between two leaves. bash treats the parser's other white space as parts of words, and joins words that only a
backslash-newline separates. It ends a command at a newline, even if the next line begins with a backslash-newline."""
_MANY_LINES = frozenset(
    {"program", "list", "pipeline", "subshell", "compound_statement", "do_group", "if_statement", "elif_clause"}
    | {"else_clause", "while_statement", "for_statement", "case_statement", "case_item", "command_substitution"}
    | {"process_substitution", "heredoc_redirect", "string"}
)
"""Syntax in which a newline separates commands or is text."""
_REDIRECTIONS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_PARTED = frozenset({"command", "negated_command"})
_WHOLE = frozenset({"concatenation", "simple_expansion", "expansion"})
_KEYWORDS = frozenset(
    {
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "while",
        "until",
        "do",
        "done",
        "for",
        "select",
        "in",
        "case",
        "esac",
        "{",
        "}",
    }
)
_AROUND_KEYWORD = tuple(bytes([byte]) for byte in b" \t\n;&|()`<>")
_LEAVES = {
    "word": re.compile(r"(?:\\.|[^\s;&|<>()\\])+", re.DOTALL),
    "file_descriptor": re.compile(r"\d+"),
    "variable_name": re.compile(r"\w+"),
    "special_variable_name": re.compile(r"[*@?!#$0_-]"),
}
_AFTER_REDIRECTION = (b"", *(bytes([byte]) for byte in b" \t\n;&|)`"))
_LITERAL_TEXT = frozenset({"raw_string", "heredoc_body", "comment"})
_DELIMITER = re.compile(r"\w+|'\w+'|\"\w+\"")
_ACTIVE_IN_BODY = re.compile(r"[\\`]|\$[({\[]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_UNARY = frozenset("-" + letter for letter in "abcdefghknoprstuvwxzGLNORS")
_NAMED = frozenset({"-v", "-R"})
"""Operators whose operand is a variable, with a subscript that is evaluated."""
_BINARY = frozenset({"=", "==", "!=", "<", ">", "-nt", "-ot", "-ef"})
_ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
"""Operators that evaluate both operands in [[ ]]."""
_SINGLE_SYNTAX = frozenset({"!", "=", "==", "!="})
"""Operators of `[ ]` that are also words to the shell."""
_NUMBER = re.compile(r"-?\d+|\$[?#]|\$\{#\w+\}|\"\$[?#]\"|\"\$\{#\w+\}\"")
_PATTERN = re.compile(r"[\w./,:=@%+*?^!\[\]~-]*\$?")


def plain_gaps(syntax: Syntax) -> bool:
    """Accept only space, tab, newline and continued lines between the leaves."""
    ends = [0, *(leaf.end_byte for leaf in syntax.leaves)]
    starts = [*(leaf.start_byte for leaf in syntax.leaves), len(syntax.source)]
    return all(_GAP.fullmatch(syntax.source[end:start]) for end, start in zip(ends, starts, strict=True))


def whole_words(syntax: Syntax) -> bool:
    """Accept blanks between the words of a command, and none within a word."""
    return not any(
        (left.end_byte == right.start_byte) == (node.type in _PARTED)
        for node in syntax.nodes
        if node.type in _PARTED or node.type in _WHOLE
        for left, right in pairwise(node.children)
        if not {left.type, right.type} & _REDIRECTIONS
    )


def keywords_apart(syntax: Syntax) -> bool:
    """Accept keywords and braces only between blanks or operators: otherwise bash takes them for part of a word."""
    source = syntax.source
    return not any(
        (source[leaf.start_byte - 1 : leaf.start_byte] or b" ") not in _AROUND_KEYWORD
        or (source[leaf.end_byte : leaf.end_byte + 1] or b" ") not in _AROUND_KEYWORD
        for leaf in syntax.leaves
        if not leaf.is_named and leaf.type in _KEYWORDS
        if leaf.parent is None or leaf.parent.type not in ("brace_expression", "expansion", "string", "concatenation")
    )


def plain_leaves(syntax: Syntax) -> bool:
    """Accept words, operators, descriptor numbers and variable names that contain nothing else: some leaves do."""
    return all(
        _LEAVES[leaf.type].fullmatch(text_of(leaf)) is not None
        if leaf.type in _LEAVES
        else leaf.is_named or text_of(leaf).strip("\n") in (leaf.type, "")
        for leaf in syntax.leaves
    )


def commands_on_one_line(syntax: Syntax) -> bool:
    """Accept newlines only between commands: bash ends a simple command there."""
    return not any(
        b"\n" in syntax.source[left.end_byte : right.start_byte].replace(b"\\\n", b"")
        for node in syntax.nodes
        if node.type not in _MANY_LINES
        for left, right in pairwise(node.children)
    )


def patterns_in_place(syntax: Syntax) -> bool:
    """Accept patterns and regular expressions only where bash expects them: elsewhere they are words and operators."""
    return all(_is_pattern_in_place(node) for node in syntax.nodes if node.type in ("regex", "extglob_pattern", "=~"))


def no_continued_words(syntax: Syntax) -> bool:
    """Accept no backslash-newline in a word: bash removes it before it looks for expansions."""
    return not any(b"\\\n" in (leaf.text or b"") for leaf in syntax.leaves if leaf.type not in _LITERAL_TEXT)


def plain_here_documents(syntax: Syntax) -> bool:
    """Accept a here-document that is the last on its line, has a plain delimiter, and ends where bash ends it.

    Accept none beside backquotes: bash looks for the closing backquote before it looks for here-documents.
    """
    documents = [node for node in syntax.nodes if node.type == "heredoc_redirect"]
    has_backquotes = any(leaf.type == "`" for leaf in syntax.leaves)
    return not (documents and has_backquotes) and all(_is_plain_document(syntax, node) for node in documents)


def plain_tests(syntax: Syntax) -> bool:
    """Accept only `[ ]`, `[[ ]]` and `test` that evaluate nothing and whose operators are certain."""
    return all(
        _is_plain_test(syntax, node) if node.type == "test_command" else _is_plain_test_program(node)
        for node in syntax.nodes
        if node.type in ("test_command", "command")
    )


def plain_sources(syntax: Syntax) -> bool:
    """Accept input from files with a known name: bash opens connections for some names."""
    return all(_is_plain_source(node) for node in syntax.nodes if node.type == "file_redirect")


def plain_redirections(syntax: Syntax) -> bool:
    """Accept no redirection that bash might separate differently from the words around it."""
    return all(_is_plain_redirection(syntax, node) for node in syntax.nodes if node.type in _REDIRECTIONS)


RULES: tuple[Rule, ...] = (
    plain_gaps,
    plain_leaves,
    whole_words,
    keywords_apart,
    commands_on_one_line,
    patterns_in_place,
    no_continued_words,
    plain_here_documents,
    plain_tests,
    plain_sources,
    plain_redirections,
)
"""All rules. Tests leave one out to show that it is needed."""


def _is_pattern_in_place(node: "Node") -> bool:
    parent = node.parent
    if parent is not None and parent.type == "case_item":
        return node.type == "extglob_pattern" and _PATTERN.fullmatch(text_of(node)) is not None
    return parent is not None and parent.type == "binary_expression"


def _is_plain_document(syntax: Syntax, redirect: "Node") -> bool:
    children = redirect.children
    if [child.type for child in children[1:]] != ["heredoc_start", "heredoc_body", "heredoc_end"]:
        return False
    operator, start, body, end = children
    written = text_of(start)
    source = syntax.source
    if not _DELIMITER.fullmatch(written) or source[start.end_byte : start.end_byte + 1] != b"\n":
        return False
    delimiter = written.strip("'\"").encode()
    position = start.end_byte + 1
    first = position
    while position < len(source):
        line_end = source.find(b"\n", position)
        line_end = len(source) if line_end < 0 else line_end
        line = source[position:line_end]
        tabs = len(line) - len(line.lstrip(b"\t")) if operator.type == "<<-" else 0
        if line[tabs:] == delimiter:
            break
        position = line_end + 1
    else:
        return False
    is_quoted = written != delimiter.decode()
    return (
        end.end_byte == line_end
        and body.start_byte >= first
        and body.end_byte <= position + tabs
        and (is_quoted or not _ACTIVE_IN_BODY.search(source[first:position].decode()))
    )


def _is_plain_test(syntax: Syntax, node: "Node") -> bool:
    opening, closing = text_of(node.children[0]), text_of(node.children[-1])
    if (opening, closing) not in (("[", "]"), ("[[", "]]")):
        return False
    parts = _parts(node)
    has_blanks = all(left.end_byte < right.start_byte for left, right in pairwise(parts))
    words = [_test_word(part) for part in parts[1:-1]]
    kinds = [part.type for part in parts[1:-1]]
    following = syntax.source[node.end_byte : node.end_byte + 1]
    if not has_blanks or following not in (b"", b" ", b"\t", b"\n", b";", b"&", b"|", b")"):
        return False
    if opening == "[[":
        return _is_plain_double(words, kinds)
    return _SINGLE_SYNTAX.issuperset(part.type for part in parts[1:-1] if not part.is_named) and _is_plain_single(words)


def _parts(node: "Node") -> list["Node"]:
    """Return the operators and operands of a test, in order."""
    parts: list[Node] = []
    waiting = list(reversed(node.children))
    while waiting:
        part = waiting.pop()
        if part.type in ("unary_expression", "binary_expression", "negation_expression"):
            waiting.extend(reversed(part.children))
        else:
            parts.append(part)
    return parts


def _test_word(node: "Node") -> ShellWord:
    if not node.is_named or node.type == "test_operator":
        text = text_of(node)
        return ShellWord(text, Extent.EXACT, text)
    if node.type in ("extglob_pattern", "regex"):
        return ShellWord(text_of(node), Extent.ANY, "")
    return word_of(node)


def _is_plain_test_program(command: "Node") -> bool:
    words = [
        word_of(child)
        for child in command.children
        if child.is_named and child.type not in ("command_name", "variable_assignment")
    ]
    name = next((literal(child.children[0]) for child in command.children if child.type == "command_name"), None)
    match (name or "").rpartition("/")[2]:
        case "test":
            return _is_plain_single(words)
        case "[":
            return bool(words) and words[-1].text == "]" and _is_plain_single(words[:-1])
        case _:
            return True


def _is_plain_single(words: Sequence[ShellWord]) -> bool:
    """Return whether `test` with these arguments evaluates nothing: no operator can be mistaken for an operand."""
    words = words[1:] if words and words[0].text == "!" and words[0].extent is Extent.EXACT else words
    if any(word.extent is Extent.ANY for word in words):
        return False
    if len(words) > 3 and all(word.extent is Extent.EXACT for word in words):
        return not any(word.text in _NAMED or word.text in ("(", ")") for word in words)
    match [word if word.extent is Extent.EXACT else None for word in words], words:
        case [_], _:
            return True
        case [ShellWord(text=operator), _], [_, operand]:
            return operator in _UNARY and (operator not in _NAMED or _is_name(operand))
        case [_, ShellWord(text=operator), _], _:
            return operator in _BINARY or operator in _ARITHMETIC
        case _:
            return False


def _is_plain_double(words: Sequence[ShellWord], kinds: Sequence[str]) -> bool:
    """Return whether `[[ ]]` with these words evaluates nothing: simple tests joined by && and ||."""
    tests: list[list[int]] = [[]]
    for number, kind in enumerate(kinds):
        if kind in ("&&", "||"):
            tests.append([])
        elif not (kind == "!" and not tests[-1]):
            tests[-1].append(number)
    return all(_is_plain_condition([words[n] for n in test], [kinds[n] for n in test]) for test in tests)


def _is_plain_condition(words: Sequence[ShellWord], kinds: Sequence[str]) -> bool:
    if not all(_is_plain_operand(word, kind) for word, kind in zip(words, kinds, strict=True)):
        return False
    match words:
        case [operand]:
            return operand.text not in ("!", "(") and not operand.text.startswith("-")
        case [operator, operand]:
            return operator.text in _UNARY and (operator.text not in _NAMED or _is_name(operand))
        case [left, operator, right]:
            if operator.text in _ARITHMETIC:
                return all(_NUMBER.fullmatch(operand.text) for operand in (left, right))
            return operator.text in _BINARY or operator.text == "=~"
        case _:
            return False


def _is_plain_operand(word: ShellWord, kind: str) -> bool:
    if kind in ("extglob_pattern", "regex", "word", "concatenation"):
        return _PATTERN.fullmatch(word.text) is not None
    return kind not in ("(", ")", "&", "|", ";", "parenthesized_expression")


def _is_name(word: ShellWord) -> bool:
    return word.extent is Extent.EXACT and _NAME.fullmatch(word.text) is not None


def _is_plain_source(redirect: "Node") -> bool:
    operators = {text_of(child) for child in redirect.children if not child.is_named}
    if not operators & {"<", "<&", "<>"}:
        return True
    targets = [child for child in redirect.children if child.is_named and child.type != "file_descriptor"]
    names = [literal(target) for target in targets]
    return all(
        target.type == "process_substitution" or (name is not None and not re.match(r"/dev/(?:tcp|udp)/", name))
        for target, name in zip(targets, names, strict=True)
    )


def _is_plain_redirection(syntax: Syntax, redirect: "Node") -> bool:
    """Return whether no descriptor number or name directly precedes it, and nothing directly follows it."""
    before = re.search(rb"[^\s;&|()<>]*$", syntax.source[max(0, redirect.start_byte - 100) : redirect.start_byte])
    stuck = before[0] if before is not None else b""
    after = syntax.source[redirect.end_byte : redirect.end_byte + 1]
    descriptors = [text_of(child) for child in redirect.children if child.type == "file_descriptor"]
    is_closing = any(text_of(child) in (">&-", "<&-") for child in redirect.children)
    return (
        not (stuck and (descriptors or re.search(rb"^\d+$|}$", stuck)))
        and not (is_closing and redirect.children[-1].is_named)
        and _has_plain_descriptor(redirect)
        and (redirect.type == "heredoc_redirect" or after in _AFTER_REDIRECTION)
    )


def _has_plain_descriptor(redirect: "Node") -> bool:
    """Return whether the target of `<&` or `>&` is a number, a hyphen, or certainly a file."""
    targets = [text_of(child) for child in redirect.children if child.is_named and child.type != "file_descriptor"]
    match next((text_of(child) for child in redirect.children if not child.is_named), ""):
        case "<&":
            return all(re.fullmatch(r"\d+|-", target) for target in targets)
        case ">&":
            return all(target == "-" or not target.startswith("-") for target in targets)
        case _:
            return True
