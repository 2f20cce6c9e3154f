"""Hints for code that does not work in a session: IPython's commands, input(), spawned processes."""

import re
import sys

PACKAGES = "packages are named when the session is opened: `dependencies: ['NAME']`, or `--with NAME` on the command line"
_HAS_PROGRAMS = sys.platform != "emscripten"
_USE_PYTHON = "there are no programs here: write it in Python"
_SHELL = "`!` starts no commands in a session: " + (
    "use subprocess.run('...', shell=True, capture_output=True, text=True).stdout" if _HAS_PROGRAMS else _USE_PYTHON
)
_INSTALL = f"`{{}}` does not work in a session: {PACKAGES}"
_HELP = "`?` shows no help in a session: use print(NAME.__doc__), or inspect.getsource(NAME) for `??`"
_MAGIC = "magics such as `%{}` belong to IPython and do not work in a session: {}"
_MAGICS = {
    "matplotlib": "remove the line, figures are shown at the end of the cell",
    "pylab": "import numpy as np and matplotlib.pyplot as plt; figures are shown at the end of the cell",
    "config": "remove the line",
    "load_ext": "remove the line",
    "autoreload": "use importlib.reload(MODULE)",
    "time": "use time.perf_counter()",
    "timeit": "use timeit.timeit(...)",
    "prun": "use cProfile.run(...)",
    "cd": "use os.chdir(...)",
    "pwd": "use os.getcwd()",
    "ls": "use os.listdir()",
    "env": "use os.environ",
    "run": "use runpy.run_path(...)",
    "who": "use list(globals())",
    "whos": "use list(globals())",
    "reset": "open a new session",
    "writefile": "use open(...).write(...)",
    "bash": "use subprocess.run(...)" if _HAS_PROGRAMS else _USE_PYTHON,
    "sh": "use subprocess.run(...)" if _HAS_PROGRAMS else _USE_PYTHON,
    "html": "use display(...) with an object that has _repr_html_",
    "sql": "use sqlite3 or another library",
}
_COMMAND = re.compile(r"\s*(?:[A-Za-z_][\w, ]*=\s*)?(%%|%|!!?)\s*(\w*)\s*(\w*)")
_QUESTION = re.compile(r"\s*(?:\?{1,2}\s*[\w.*]+|[\w.*]+(?:\([^()]*\))?\s*\?{1,2})\s*;?\s*(?:#.*)?")
_NO_INPUT = "EOF when reading a line"
_INPUT = "input() has nothing to read in a session: write the value into the cell, or give it with the cell as an input"
_SPAWN = (
    "; processes that start by spawn or forkserver find no functions of cells: use multiprocessing.get_context('fork'), "
    "or write the functions to a file and import it"
)
_MAX_LINE = 1000


def explain_syntax(error, source):
    """Completes a SyntaxError of a cell: adds its line and, for IPython syntax, a hint on what to write instead."""
    lines = source.splitlines()
    if error.text is None and isinstance(error.lineno, int) and 0 < error.lineno <= len(lines):
        error.text = lines[error.lineno - 1]
    at = error.lineno - 1 if isinstance(error.lineno, int) else -1
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    for line in (lines[at] if 0 <= at < len(lines) else "", first):
        hint = _hint_for(line[:_MAX_LINE])
        if hint is not None:
            error.msg = hint
            return


def explain(error):
    """Replaces or extends the message of an exception that would be misleading in a session."""
    if type(error) is EOFError and error.args == (_NO_INPUT,):
        error.args = (_INPUT,)
    elif _is_broken_pool(error) and spawns() and len(error.args) == 1:
        error.args = (f"{error.args[0]}{_SPAWN}",)


def note_of_timeout(error):
    """Returns a note for the message of a timeout in a pool, which keeps starting processes that do not find its function; or
    ""."""
    place = error.__traceback__
    while place is not None:
        name = dict.get(place.tb_frame.f_globals, "__name__")  # not by a method of the script
        if type(name) is str and name == "multiprocessing.pool" and spawns():
            return _SPAWN
        place = place.tb_next
    return ""


def spawns():
    """True if this process has started processes by spawn or forkserver."""
    return any(f"multiprocessing.popen_{way}" in sys.modules for way in ("spawn_posix", "forkserver"))


def _hint_for(line):
    command = _COMMAND.match(line)
    if command is not None:
        sign, word, following = command.groups()
        if word in ("pip", "pip3", "conda", "mamba", "uv", "apt", "apt-get"):
            return _INSTALL.format(f"{sign}{word} {following}".rstrip())
        if sign.startswith("!"):
            return _SHELL
        if word:
            return _MAGIC.format(word, _MAGICS.get(word, "write it in Python"))
    return _HELP if _QUESTION.fullmatch(line) else None


def _is_broken_pool(error):
    module = sys.modules.get("concurrent.futures.process")
    return module is not None and issubclass(type(error), module.BrokenProcessPool)
