"""Creates violations with positions in the script, sorted, and limited in number and length."""

MAX_VIOLATIONS = 50
MAX_TEXT = 300
MAX_NAME = 60


class Report:
    """Collects violations. It keeps only the first violation at each position of a script."""

    def __init__(self, lines):
        self._lines = lines
        self._found = {}

    def add(self, code, node, message, hint):
        """`node` is anything with `lineno` and `col_offset` (in bytes, as `ast` counts)."""
        line = min(max(1, node.lineno), max(1, len(self._lines)))
        self.add_at(code, line, _characters(self._lines, line, node.col_offset), message, hint)

    def add_at(self, code, line, column, message, hint):
        """`column` counts characters from 0."""
        self._found.setdefault((line, column), _violation(code, line, column, message, hint))

    def __len__(self):
        return len(self._found)

    def violations(self):
        """Returns the violations by line, then column: at most 50, the last of which counts the rest."""
        found = [self._found[place] for place in sorted(self._found)]
        if len(found) <= MAX_VIOLATIONS:
            return found
        last, more = found[MAX_VIOLATIONS - 1], len(found) - MAX_VIOLATIONS + 1
        message = f"{last['message']} (And {more - 1} more problems below this one.)"
        return [*found[: MAX_VIOLATIONS - 1], {**last, "message": cut(message)}]


def one_violation(code, line, column, message, hint):
    """Returns a list of one violation."""
    return [_violation(code, line, column, message, hint)]


def cut(text, limit=MAX_TEXT):
    """Returns at most `limit` characters of a text. Characters that UTF-8 cannot encode are replaced."""
    text = text.encode("utf-8", "replace").decode() if not text.isascii() else text
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shorten(text):
    """Returns a name from a script, short enough for a message."""
    return cut(text, MAX_NAME)


def join_names(names, limit=8):
    """Returns at most `limit` names as `a, b, c, …`."""
    names = [shorten(each) for each in names]
    return ", ".join(names[:limit]) + (", …" if len(names) > limit else "")


def _violation(code, line, column, message, hint):
    return {"code": code, "line": line, "column": column, "message": cut(message), "hint": cut(hint)}


def _characters(lines, line, offset):
    """Converts an offset of the parser, in bytes of UTF-8, to characters."""
    text = lines[line - 1] if line <= len(lines) else ""
    if not text.isascii():
        return len(text.encode("utf-8", "replace")[: max(0, offset)].decode("utf-8", "ignore"))
    return min(max(0, offset), len(text))
