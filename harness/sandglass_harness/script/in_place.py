"""Runs one script in this interpreter: for engines whose sandboxes have no processes (Pyodide).

The engine has opened descriptors 0 to 3. Frames leave over descriptor 3, where the request and answers arrive, each as a length
and JSON. The engine has the clock, and raises SIGALRM at the deadline. It discards the interpreter after the script.
"""

import gc
import json
import os
import sys
import time
import types

from ..check import checker
from . import emit, explain, in_place_loop, runtime, script_process, show_hooks, tool_functions, tools
from .door import called_by_script
from .script_process import FRAME_FD

_BRIDGES = {"js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core"}
_REMOVED = {"_ctypes", "_posixsubprocess", "_remote_debugging"}

_loop = in_place_loop.CallSelector()
_emitter = None
_preloaded = None
_bridge_parts = []


def warm_up():
    """Loads everything that a run needs, and touches its memory, before the snapshot is made.

    It finds what _remove_bridges has to empty, and freezes all objects: instances then look at them once and not three times.
    """
    # The files of the harness are gone when a script runs.
    from . import bundle, figures, ipython_shim, pictures, show_functions, tables  # noqa: F401

    checker.warm_up()
    runtime.rehearse()
    script_process.warm_up()
    gc.collect()
    _bridge_parts[:] = filter(_is_part_of_bridge, gc.get_objects())
    gc.freeze()


def prepare(config):
    """Prepares for the request: removes access to JavaScript, loads tools and modules. Returns a report as JSON."""
    global _emitter, _preloaded
    config = json.loads(config)
    _remove_bridges()
    if "random" in sys.modules:  # its state is in the snapshot, so every run would draw the same numbers
        sys.modules["random"].seed()
    _set_up(config)
    gc.unfreeze()
    gc.collect()  # what only the bridge and its event loop held
    gc.freeze()
    show_hooks.install()
    _emitter = emit.Emitter(FRAME_FD)
    scope, loop = tools.fresh_scope(), tools.ToolLoop()
    loaded = {"tools": {"loaded": [], "failed": []}, "preload": {"loaded": [], "failed": [], "deferred": []}}
    for name in config["preload"]:
        _load(loaded["preload"], name, lambda name=name: _import(name), config)
    for path in tools.list_tool_files(config["tools"]) if config["tools"] else []:
        _load(loaded["tools"], os.path.basename(path), lambda path=path: tools.load_file(path, scope, loop), config)
    _preloaded = script_process.Preloaded(tools.select_public(scope), has_packages=bool(config["import_paths"]))
    _rehearse()
    gc.collect()
    version = ".".join(str(n) for n in sys.version_info[:3])
    return json.dumps({"python": version, "loaded": loaded, "checks": _checks(config)})


_REHEARSAL = """
import json
total = sum(n * n for n in range(5) if n % 2)
emit_log(f"{total}")
emit_intermediate("part", {"a": [1, 2.5, None, True], "b": "text"})
emit_result({"total": total, "sorted": sorted("cab")})
"""


def _rehearse():
    """Runs a script once, because WebAssembly compiles a function at its first call."""
    before = set(sys.modules)
    emitter = emit.SilentEmitter(FRAME_FD)
    tool_functions.make_functions([_TOOL], in_place_loop.Bridge(FRAME_FD, emitter))
    runtime.run_script(_REHEARSAL, emitter, inputs=json.loads('{"rows": [1, {"a": null}]}'))
    print(end="")
    for name in set(sys.modules) - before:
        del sys.modules[name]


_TOOL = {
    "name": "rehearsed",
    "params": [{"name": "x", "type": "int", "required": True, "nullable": False}],
    "more": False,
    "returns": "int",
    "doc": "",
    "types": "",
}


def run_request():
    """Receives the request and runs it. Returns the exit code."""
    begin()
    return script_process.run(script_process.receive(), _emitter, _preloaded, make_bridge)


def begin():
    """Prepares this interpreter for the code of a script or a session. Returns the emitter and the preloaded tools and modules."""
    emit.use(_emitter)
    script_process.copy_home_files(script_process.find_home_files(_preloaded))
    return _emitter, _preloaded


def make_bridge():
    """Creates the bridge to host tools for a new run or session."""
    _loop.bridge = in_place_loop.Bridge(FRAME_FD, _emitter)
    return _loop.bridge


def _remove_bridges():
    """Removes every JavaScript object from Python, and every module that creates one."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not _module_of(finder).startswith("_pyodide")]
    sys.path_hooks[:] = [hook for hook in sys.path_hooks if not _module_of(hook).startswith("_pyodide")]
    sys.path_importer_cache.clear()
    for name in list(sys.modules):
        if name.partition(".")[0] in _BRIDGES | _REMOVED:
            module = sys.modules.pop(name)
            if isinstance(module, types.ModuleType):
                module.__dict__.clear()
    for thing in [*_bridge_parts, *filter(_is_part_of_bridge, gc.get_objects())]:  # the latter are made after the snapshot
        content = thing if type(thing) is dict else thing.__dict__
        content.clear()
    thing = content = None
    _bridge_parts.clear()
    sys.modules.pop("ctypes", None)
    sys.meta_path.insert(0, _NoBridges())
    sys.breakpointhook, sys.excepthook = sys.__breakpointhook__, sys.__excepthook__


def _is_part_of_bridge(thing):
    """True for what CPython recreates a built-in module from, and for finders, loaders and what else holds JavaScript's objects."""
    if type(thing) is dict:
        return thing.get("__name__") in _BRIDGES | _REMOVED
    return _module_of(type(thing)).startswith("_pyodide") and hasattr(thing, "__dict__")


class _NoBridges:
    """Refuses imports of the Python parts of the bridge, which are still in the standard library directory."""

    @called_by_script
    def find_spec(self, name, _path=None, _target=None):
        """Finds nothing. Raises ModuleNotFoundError for modules of the bridge."""
        if name.partition(".")[0] in _BRIDGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _module_of(thing):
    return getattr(thing, "__module__", None) or getattr(type(thing), "__module__", "")


def _set_up(config):
    """Sets up paths, streams and functions as on other engines."""
    os.environ.clear()
    os.environ.update(config["environment"])
    os.chdir(config["workspace"])
    harness = __file__.partition("/sandglass_harness/")[0]
    library = [path for path in dict.fromkeys(sys.path) if path not in ("", harness)]
    sys.path[:] = [config["workspace"], *library, *config["import_paths"]]
    script_process.open_streams()
    time.sleep = _sleep
    _refuse_host_names()
    in_place_loop.install(_loop)
    tools.ToolLoop = in_place_loop.ToolLoop


def _refuse_host_names():
    """Makes lookups of host names fail, because there is no network and Emscripten would invent addresses."""
    import _socket
    import socket

    @called_by_script
    def refuse(*_args, **_kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo"):
        for module in (_socket, socket):
            setattr(module, name, refuse)


@called_by_script
def _sleep(seconds, /):
    """Suspends execution for a number of seconds. (Emscripten's own function keeps the CPU busy.)"""
    if seconds != seconds:
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        os.lseek(FRAME_FD, min(max(int(left * 1_000_000), 0), 3_600_000_000), os.SEEK_SET)
        for _ in range(64):  # Python checks for the deadline only every few steps
            pass
        if time.monotonic() >= end:
            return


def _load(report, name, job, config):
    if name in config["fatal"]:
        report["failed"].append({"name": name, "message": "its process died while it was loaded"})
        return
    os.write(FRAME_FD, json.dumps({"type": "loading", "name": name}).encode() + b"\n")
    try:
        job()
    except BaseException as error:
        report["failed"].append({"name": name, "message": explain.describe_briefly(error)})
    else:
        report["loaded"].append(name)


def _import(name):
    import importlib

    importlib.import_module(name)


def _is_recreated(name):
    """True if CPython can still recreate a built-in module that is no longer in its table."""
    import _imp
    from importlib.machinery import ModuleSpec

    module = _imp.create_builtin(ModuleSpec(name, None))
    sys.modules.pop(name, None)  # CPython has added the module there
    return module is not None and any(not key.startswith("__") for key in vars(module))


def _checks(config):
    """Probes what a script must not be able to do. Returns the results."""
    import _imp

    def can(call):
        try:
            call()
        except BaseException:
            return False
        return True

    def start_thread():
        import threading

        threading.Thread(target=int).start()

    def grows_too_large():
        bytearray(config["memory_bytes"])

    def fills(directory, size):
        path = os.path.join(directory, ".sandglass")
        with open(path, "wb") as file:
            try:
                file.truncate(size + 1)
            finally:
                os.unlink(path)

    scratch = config["scratch"].items()
    return {
        "bridges": ", ".join(sorted(name for name in _BRIDGES if can(lambda name=name: __import__(name)))),
        "memory_by_address": can(lambda: __import__("_ctypes")) or bool(_imp.is_builtin("_ctypes")),
        "bridge_builtin": bool(_imp.is_builtin("_pyodide_core")) or _is_recreated("_pyodide_core"),
        "threads": can(start_thread),
        "processes": hasattr(os, "fork") and can(os.fork),
        "memory_limited": not can(grows_too_large),
        "disk_limited": not any(can(lambda d=d, s=s: fills(d, s)) for d, s in scratch),
        "abi": _imp.extension_suffixes()[0].removeprefix(".").removesuffix(".so"),
    }
