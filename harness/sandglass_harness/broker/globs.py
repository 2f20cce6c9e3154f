"""Globs over the paths of a workspace."""


class Matcher:
    """Globs over whole paths: `**` matches any number of parts, other wildcards match within one part.

    As in a shell, a part that begins with a dot matches only where the glob writes that dot: programs of the host read
    such files (`.git/config`, `.envrc`) implicitly. With `hidden`, wildcards match the dot as well.
    """

    def __init__(self, patterns, hidden=False):
        import fnmatch
        import re

        def compile_glob(pattern):
            parts = pattern.strip("/").split("/")
            # A final `**` needs a name: `out/**` matches everything below out, not out itself.
            parts += ["*"] if parts[-1] == "**" else []
            return [part if part == "**" else compile_part(part) for part in parts]

        def compile_part(part):
            return re.compile(("" if hidden or part.startswith(".") else r"(?!\.)") + fnmatch.translate(part))

        self._hidden = hidden
        self._patterns = [compile_glob(pattern) for pattern in patterns]

    def matches(self, path):
        """True if a pattern matches a file of this path."""
        return any(len(pattern) in _closure(pattern, states) for pattern, states in self._match(path))

    def can_match_below(self, directory):
        """True if a pattern can match a path below a directory."""
        return any(any(state < len(pattern) for state in states) for pattern, states in self._match(directory))

    def _match(self, path):
        """Yields each pattern with the positions in it that the whole path reaches."""
        for pattern in self._patterns:
            states = {0}
            for part in path.split("/"):
                states = _step(pattern, states, part, self._hidden)
            yield pattern, states


def _step(pattern, states, part, hidden):
    """Returns the positions in a pattern that one more part of a path reaches."""
    result = set()
    for state in _closure(pattern, states):
        if state >= len(pattern):
            continue
        if pattern[state] == "**":
            if hidden or not part.startswith("."):
                result.add(state)
        elif pattern[state].match(part):
            result.add(state + 1)
    return result


def _closure(pattern, states):
    """Adds the positions behind each `**`, which may match no part at all."""
    result = set(states)
    for state in states:
        while state < len(pattern) and pattern[state] == "**":
            state += 1
            result.add(state)
    return result
