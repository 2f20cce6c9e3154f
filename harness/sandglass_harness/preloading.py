"""Loads tool files and modules before the first script, each first tried in a process of its own.

What leaves a thread behind can not be loaded ahead (threads do not survive a fork): it is loaded in each run instead.
"""

import importlib
import os

from . import tools

MAX_FAILED = 100


def load(config):
    """Returns (globals for scripts, functions that a child calls first, what was loaded and what was not)."""
    loop = tools.ToolLoop()
    scope = tools.fresh_scope()
    files = tools.tool_files(config["tools"]) if config["tools"] else []
    jobs = [("preload", name, _importer(name)) for name in config["preload"]]
    jobs += [("tools", os.path.basename(path), _file_loader(path, loop)) for path in files]
    verdicts = _try_out([job for _, _, job in jobs], scope)
    told = {"tools": {"loaded": [], "failed": []}, "preload": {"loaded": [], "failed": [], "deferred": []}}
    loaders = []
    for (kind, name, job), verdict in zip(jobs, verdicts):
        if verdict == "ok":
            verdict = _verdict(job, scope)  # what loaded once need not load twice
        if verdict == "threads":
            loaders.append(job)
            told[kind].setdefault("deferred", []).append(name)
        elif verdict == "ok":
            told[kind]["loaded"].append(name)
        elif len(told[kind]["failed"]) < MAX_FAILED:  # one message of bounded size tells them
            told[kind]["failed"].append({"name": name, "message": verdict[:500]})
    deferred = told["tools"].pop("deferred", [])
    told["tools"]["loaded"] += deferred
    told["preload"]["deferred"] += deferred
    return tools.public(scope), loaders, told


def _importer(name):
    def run(_scope):
        importlib.import_module(name)

    return run


def _file_loader(path, loop):
    def run(scope):
        before = dict(scope)
        try:
            tools.load_file(path, scope)
        except BaseException:
            scope.clear()
            scope.update(before)
            raise
        tools.wrap_async(scope, loop)

    return run


def _try_out(jobs, scope):
    """A verdict for each job: `ok`, `threads`, or what went wrong. A job that kills its process does not stop the rest."""
    verdicts = []
    while len(verdicts) < len(jobs):
        verdicts += _try_in_a_process(jobs[len(verdicts) :], scope)
        if len(verdicts) < len(jobs):
            verdicts.append("its process died while it was loaded")
    return verdicts


def _try_in_a_process(jobs, scope):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        for job in jobs:
            before = _threads()
            verdict = _verdict(job, scope)
            if verdict == "ok" and _threads() > before:
                verdict = "threads"
            os.write(write, verdict[:2000].encode("utf-8", "replace") + b"\n")
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8", errors="replace", newline="\n") as answers:
        verdicts = answers.read().split("\n")[:-1]
    os.waitpid(pid, 0)
    return verdicts


def _verdict(job, scope):
    """`ok`, or what went wrong."""
    try:
        job(scope)
    except BaseException as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    return "ok"


def _threads():
    return len(os.listdir("/proc/self/task"))
