"""Compiles a script, and finds a hint for a syntax error."""

import ast
import keyword
import re
import warnings

from .report import cut, one_violation

FILENAME = "<script>"
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_EXCERPT = 80


def parse(source, lines):
    """Compiles a script like the runtime. Returns (tree, []) if it compiles, otherwise (None, violations)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _compile(source), []
        except SyntaxError as error:
            return None, _violation(error, lines)
        except (RecursionError, MemoryError):
            return None, _too_deep()
        except (ValueError, OverflowError) as error:  # a NUL, a lone surrogate
            return None, _unreadable(error, source)


def is_script(text):
    """True if a text is Python code with an effect. Names and values alone, as in `Total: 5`, are an answer in prose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text, FILENAME)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
            return False
    return any(_has_effect(statement) for statement in tree.body)


def _has_effect(statement):
    if isinstance(statement, ast.Expr) or isinstance(statement, ast.AnnAssign) and statement.value is None:
        return any(isinstance(node, _ACTIONS) for node in ast.walk(statement))
    return True


_ACTIONS = (ast.Call, ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)


def _compile(source):
    tree = ast.parse(source, FILENAME)
    try:
        compile(tree, FILENAME, "exec", dont_inherit=True)  # a third faster than compiling the text
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # From the text, like the runtime, for the same positions and limits.
        compile(source, FILENAME, "exec", dont_inherit=True)
    return tree


def _too_deep():
    return one_violation(
        "syntax_error",
        1,
        0,
        "the script is nested too deep for Python to compile",
        "Split long chains of operators and nested brackets into several statements.",
    )


def _unreadable(error, source):
    wrong = next((i for i, c in enumerate(source) if c == "\0" or "\ud800" <= c <= "\udfff"), 0)
    before = split_lines(source[:wrong])
    hint = "Remove the character; in a string write it as an escape such as \\x00 or \\ud83d."
    return one_violation("syntax_error", len(before), len(before[-1]), f"Python cannot read the script: {error}", hint)


def split_lines(source):
    """Splits a script into the lines of the parser, for which a form feed or U+2028 does not end a line."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _violation(error, lines):
    message = error.msg or "invalid syntax"
    if "too many nested" in message or "too complex" in message:
        return _too_deep()
    line = min(max(1, error.lineno or 1), len(lines))
    text = lines[line - 1]
    column = min(max(0, (error.offset or 1) - 1), len(text))
    if "\0" in "".join(lines):
        return _unreadable(message, "\n".join(lines))
    hint = _hint(message, text, column, lines, line) or f"Correct line {line}: {cut(text.strip(), _EXCERPT)}"
    return one_violation("syntax_error", line, column, message, hint)


def _hint(message, text, column, lines, line):
    for rule in (_by_text, _by_message):
        hint = rule(message, text, column)
        if hint is not None:
            return hint
    before = next((each for each in reversed(lines[: line - 1]) if each.strip()), "")
    if re.search(r"[(\[{,\\]\s*$", before):
        return f"Look at the line above too: is a bracket or a comma missing after {cut(before.strip(), _EXCERPT)!r}?"
    return None


def _by_text(message, text, column):
    """Finds syntax of other languages and of Markdown in the line."""
    stripped = text.strip()
    if stripped.startswith("```"):
        return "Remove the lines with ```: the script is the Python code alone."
    if message.startswith(("invalid syntax", "expected ", "invalid decimal")):
        for found in re.finditer(r"(?<![\w.])(\w+)\s*=(?!=)", text):
            if keyword.iskeyword(found[1]) and found.start() <= column <= found.end():
                return f"{found[1]} is a keyword of Python, not a name: write {found[1]}_= for the parameter."
    if not message.startswith(("invalid syntax", "expected", "cannot assign", "unmatched", "illegal", "invalid")):
        return None
    for pattern, hint in _OTHER_LANGUAGES:
        if re.search(pattern, stripped):
            return hint
    return None


_OTHER_LANGUAGES = (
    (r"^(\}\s*)?else\s+if\b", "Write elif in place of else if."),
    (r"^(const|let|var)\s+\w+", "Python has no const, let or var: write name = value."),
    (r"^(async\s+)?function\b", "Write def name(parameters): and indent the body."),
    (r"&&", "Write and in place of &&."),
    (r"\|\|", "Write or in place of ||."),
    (r"(\+\+|--)\s*;?$", "Write x += 1 in place of x++."),
    (r"^(//|/\*)", "Comments begin with #."),
    (r"=>", "Write lambda x: … in place of x => …"),
    (r"^except\s+[\w.]+\s*,\s*\w+\s*:", "Write except Error as error: in place of except Error, error:"),
    (r"(^|[\s(=])!\s*\w", "Write not in place of !."),
    (r"^try\s*\{|\)\s*\{$", "Blocks begin with : and are indented; there are no braces."),
)


def _by_message(message, text, column):
    opened = re.search(r"'(.)' was never closed", message)
    if opened:
        return f"Add the missing {_CLOSING.get(opened[1], 'bracket')} that closes the {opened[1]} of this line."
    for pattern, hint in _MESSAGES:
        if re.search(pattern, message):
            return hint
    mistaken = re.search(r"invalid (?:non-printable )?character '?(.)?'? ?\(?U\+([0-9A-F]+)", message)
    if mistaken:
        return "Replace it with the plain character: straight quotes, -, and ordinary spaces."
    return None


_MESSAGES = (
    (r"unterminated triple-quoted|EOF while scanning triple", "Add the closing triple quote."),
    (r"unterminated|EOL while scanning", "Add the closing quote; text over several lines needs triple quotes."),
    (r"Missing parentheses in call to 'print'", "Write print(...) with parentheses."),
    (r"Missing parentheses in call", "Put the arguments in parentheses: it is a function."),
    (r"expected ':'", "Add a : at the end of the line."),
    (r"expected an indented block", "Indent the lines of the block by four spaces."),
    (r"unexpected indent", "Remove the indent: no block begins here."),
    (r"unindent does not match|inconsistent (use of tabs|dedent)", "Indent each line of a block by the same spaces."),
    (r"Maybe you meant '=='|cannot assign to .*==", "Write == to compare; = assigns."),
    (r"'return' outside function", "A script has no return: write emit_result(value) instead."),
    (r"'await' outside async|outside async function|asynchronous comprehension outside", "Put it into async def main() "
     "and call asyncio.run(main()), or call the tool without await."),
    (r"'await' outside function", "Put it into async def main() and call asyncio.run(main())."),
    (r"'yield' outside function|'yield from' outside", "Only a function can yield: use a list, or write a def."),
    (r"outside loop|not properly in loop", "break and continue are for loops; use if and else here."),
    (r"positional argument follows keyword", "Put arguments without a name before those with one."),
    (r"keyword argument repeated", "Give each argument once."),
    (r"duplicate argument", "Give each parameter a name of its own."),
    (r"unmatched '(.)'|does not match opening", "Remove the bracket, or add the one that opens it."),
    (r"perhaps you forgot a comma", "Add the comma between the two values, or the operator."),
    (r"f-string", "Close each { of the f-string by }, and write {{ for a brace of the text."),
    (r"prior to global declaration|used prior to|assigned to before global", "Put global first in the function."),
    (r"no binding for nonlocal|nonlocal declaration not allowed", "nonlocal is for names of a function around this "
     "one; for names of the script write global."),
    (r"leading zeros", "Write the number without the zeros in front."),
    (r"cannot assign to|cannot delete|illegal target", "Only a name, an item or an attribute can be on the left of =."),
    (r"from __future__ imports must occur", "Move it to the first line of the script."),
    (r"expected 'except' or 'finally'", "Add except Exception as error: and what to do then."),
    (r"can be used only in|import \* only allowed", "Import the names that are needed."),
)
