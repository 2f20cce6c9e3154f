"""The part of a script's process that is the same on every engine: receives a request, runs or checks the script, reports the end.

`child` uses it in a forked process, `in_place` in an interpreter that was started for one run.
"""

import binascii
import json
import os
import struct
import sys
import time

from .. import text
from ..wire import encode
from . import emit, explain, imports, runtime, tool_functions
from .convert import to_json

_HOME = ".sandglass/home"  # in a directory of packages
_REHEARSAL = b"""{"script": "emit_result([n for n in range(3)])", "inputs": {}, "secrets": {}, "limits": {}, "deadline": 1e12,
"timeout_text": "30", "tools": null, "tool_sources": null, "stdin_base64": null, "preamble": null, "postamble": null, "check":
null}"""
_scan = json.JSONDecoder().scan_once
FRAME_FD = 3  # frames leave over it; requests and answers arrive, each as a length and JSON


class Preloaded:
    """Tools and modules loaded before the first script: globals, loaders that each run calls itself, and the names that these
    loaders add. With `has_packages`, each run reports the modules that it loads."""

    def __init__(self, base_globals, loaders=(), added=(), has_packages=False):
        self.base_globals, self.loaders, self.added, self.has_packages = base_globals, loaders, added, has_packages


_NOTHING_LOADED = Preloaded({})


class SetupError(Exception):
    """The script cannot run, because it lacks a prerequisite."""


def warm_up():
    """Runs the code paths of every run once, so that forks and snapshots of this process start with warm caches."""
    exec(compile("def f(n):\n    return [i for i in range(n)]\nx = f(3)", "<warm>", "exec"), {})
    json.dumps(to_json({"a": [1, 2.5, "x", None, True]}))
    json.loads('{"a": [1, 2.5, "x", null, true]}')
    try:
        exec(compile("1/0", explain.FILENAME, "exec"), {})
    except ZeroDivisionError as error:
        explain.describe(error)


def rehearse(fd=FRAME_FD):
    """Serves a request without reports, to touch the memory that every run touches. Page faults after a fork, including those of
    code, dominate the time of a short run. `fd` is writable; nothing is written to it."""
    before = emit.current
    _serve(parse(bytearray(_REHEARSAL)), emit.SilentEmitter(fd), _NOTHING_LOADED, None, finishes=False)
    emit.use(before)
    explain.forget_source()


def open_streams():
    """Opens the streams of `sys` on descriptors 0 to 2, and installs the handler of the deadline's signal."""
    sys.argv = [""]
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = _text_stream(1)
    sys.stderr = sys.__stderr__ = _text_stream(2)
    emit.install_clock()


def receive():
    """Returns the next request. Ends the process if there is none."""
    request = _receive_message()
    if request.pop("in_parts", False):
        request.update(_receive_message())
    return request


def _receive_message():
    return parse(_read_exactly(struct.unpack("=I", _read_exactly(4))[0]))


def parse(message):
    """Parses the broker's JSON, as json.loads does but without the search for an encoding and for spaces around it."""
    return _scan(message.decode(), 0)[0]


def run(request, emitter, preloaded, make_bridge):
    """Serves a request. Returns the exit code.

    Calls `make_bridge()` if there are tools. Without a deadline in the request, the broker or the engine sends SIGALRM.
    """
    code, notes = _serve(request, emitter, preloaded, make_bridge)
    _send_finished(notes)
    return code


def _serve(request, emitter, preloaded, make_bridge, finishes=True):
    """Returns the exit code, and the record of the modules that the script loaded, if there is one."""
    give_input(request.get("stdin_base64"))
    if request["secrets"]:
        os.environ.update(request["secrets"])
        text.hide(request["secrets"])
    code = notes = None
    try:
        deadline = request.get("deadline")
        emit.arm(None if deadline is None else deadline - time.monotonic())
        if request.get("check"):
            code = _check(request, emitter, preloaded)
        else:
            if preloaded.has_packages:
                notes = imports.ImportNotes()
                notes.begin()
            code = _execute(request, emitter, preloaded, make_bridge, finishes)
        emit.disarm()
    except emit.ScriptTimeout:
        if code is None:  # otherwise the script was already done
            code = 1
            runtime.report_timeout(emitter, request["timeout_text"])
    return code, notes


def find_home_files(preloaded):
    """Lists directories with files that packages expect in the home directory, such as a font cache, which is slow to build."""
    if not preloaded.has_packages:
        return []
    sources = [os.path.join(path, _HOME) for path in sys.path[1:] if path.startswith("/")]  # the first is the workspace
    return [source for source in sources if os.path.isdir(source)]


def copy_home_files(sources):
    """Copies what find_home_files() found."""
    for source in sources:
        _copy_tree(source, os.path.expanduser("~"))


def _copy_tree(source, target):
    """Copies like shutil.copytree, in half the time for a few small files. Keeps existing files, which may belong to a script."""
    for entry in os.scandir(source):
        path = os.path.join(target, entry.name)
        try:
            if entry.is_dir(follow_symlinks=False):
                os.makedirs(path, exist_ok=True)
                _copy_tree(entry.path, path)
            else:
                with open(entry.path, "rb") as original, open(path, "xb") as copy:
                    copy.write(original.read())
        except OSError:  # it exists, or the disk is full; packages create missing files again
            continue


def give_input(content):
    """Makes descriptor 0 an unnamed file with these bytes, so that programs of the script can read them, too."""
    if content is None:
        return
    with _open_unnamed() as file:
        left = memoryview(binascii.a2b_base64(content))
        while left:
            left = left[file.write(left) :]
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        os.dup2(file.fileno(), 0)


def _open_unnamed():
    if hasattr(os, "memfd_create"):  # other processes cannot open it, and it needs no disk space
        return open(os.memfd_create("input"), "w+b", buffering=0)
    path = os.path.join(os.environ.get("TMPDIR") or "/tmp", ".sandglass-input")
    file = open(path, "x+b", buffering=0)
    os.unlink(path)
    return file


def _check(request, emitter, preloaded):
    from ..check import checker  # already loaded in sandboxes for checks

    asked = request["check"]
    asked["names"] += [*preloaded.base_globals, *preloaded.added]
    script, whole, answer = request["script"], asked.pop("whole", None), {}
    if whole is not None:
        answer["whole"] = checker.is_script(whole)
        script = whole if answer["whole"] else script
    if asked.pop("list_tools", False):
        answer["tools"] = checker.find_named_tools(
            script,
            [tool["name"] for tool in asked["tools"]],
            allow_modules=asked["allow_modules"],
            files=asked.get("files", False),
        )
    emitter.send({"type": "check_result", "violations": checker.check(script, **asked), **answer})
    return 0


def _execute(request, emitter, preloaded, make_bridge, finishes):
    try:
        tools = _tools(request, make_bridge)
    except SetupError as error:
        emitter.send({"type": "error", "message": str(error), "traceback": None, "kind": "setup"})
        return 1
    _, code = runtime.run_script(
        request["script"],
        emitter,
        base_globals=preloaded.base_globals,
        loaders=preloaded.loaders,
        tools=tools,
        tool_sources=request.get("tool_sources") or (),
        inputs=request["inputs"],
        preamble=request.get("preamble") or "",
        postamble=request.get("postamble") or "",
        timeout_text=request["timeout_text"],
        announces_script=request.get("announces_script", True),
        finishes=finishes,
    )
    return code


def _tools(request, make_bridge):
    signatures, sources = request.get("tools") or (), request.get("tool_sources") or ()
    if not signatures and not sources:
        return None
    return tool_functions.make_functions(signatures, make_bridge(), {source["name"]: source["stub"] for source in sources})


def _send_finished(notes):
    """Reports that the run is finished, and the modules that it loaded. The process ends next."""
    frame = {"type": "finished"}
    if notes is not None and notes.loaded:
        frame["imported"] = notes.loaded
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    try:
        os.write(FRAME_FD, encode(frame))
    except OSError:
        pass


def _text_stream(fd):
    return open(fd, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def _read_exactly(count):
    data = bytearray()
    while len(data) < count:
        piece = os.read(FRAME_FD, min(count - len(data), 1 << 20))
        if not piece:
            os._exit(0)
        data += piece
    return data
