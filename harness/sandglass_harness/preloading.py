"""Loads tool files and modules before the first script, each first tried in a process of its own.

What leaves a thread or a process behind can not be loaded ahead (threads do not survive a fork, processes not the end
of a run): it is loaded in each run instead.
"""

import asyncio  # noqa: F401  async tools need it in each run: loaded here, runs share it
import functools
import importlib
import json
import os

from . import descendants, tools
from .explain import brief

MAX_FAILED = 100


def load(config):
    """Returns (globals for scripts, what a child loads first, names that this adds, what was loaded and what was not).

    What a child loads are pairs of a name for messages and a function that takes the globals.
    """
    loop = tools.ToolLoop()
    scope = tools.fresh_scope()
    files = tools.tool_files(config["tools"]) if config["tools"] else []
    jobs = [("preload", name, _once(_importer(name))) for name in config["preload"]]
    jobs += [("tools", os.path.basename(path), _once(functools.partial(tools.load_file, path, loop=loop))) for path in files]
    told = {"tools": {"loaded": [], "failed": []}, "preload": {"loaded": [], "failed": [], "deferred": []}}
    loaders, added = [], []
    with descendants.adopted():
        verdicts = _try_out([job for _, _, job in jobs], scope)
        for (kind, name, job), verdict in zip(jobs, verdicts):
            if verdict == "ok":
                verdict = _verdict(job, scope)  # what loaded once need not load twice
            if isinstance(verdict, list):
                added += verdict
                what = "the tool file" if kind == "tools" else "the preloaded module"
                loaders.append((f"{what} {name}", job))
                told[kind].setdefault("deferred", []).append(name)
            elif verdict == "ok":
                told[kind]["loaded"].append(name)
            elif len(told[kind]["failed"]) < MAX_FAILED:  # one message of bounded size tells them
                told[kind]["failed"].append({"name": name, "message": verdict})
    deferred = told["tools"].pop("deferred", [])
    told["tools"]["loaded"] += deferred
    told["preload"]["deferred"] += deferred
    return tools.public(scope), loaders, added, told


def _importer(name):
    def run(_scope):
        importlib.import_module(name)

    return run


def _once(job):
    """A job that may fork, and whose child may come back as well: that one ends."""

    def run(scope):
        process = os.getpid()
        try:
            job(scope)
        finally:
            if os.getpid() != process:
                os._exit(0)

    return run


def _try_out(jobs, scope):
    """A verdict for each job: `ok`, the names that it adds where each run has to do it, or what went wrong. One that kills
    its process does not stop the rest."""
    verdicts = []
    while len(verdicts) < len(jobs):
        verdicts += _try_in_a_process(jobs[len(verdicts) :], scope)
        if len(verdicts) < len(jobs):
            verdicts.append("its process died while it was loaded")
    return verdicts


def _try_in_a_process(jobs, scope):
    answers = os.memfd_create("verdicts")  # no pipe: the end of one waits for everybody who was left with it
    pid = os.fork()
    if pid == 0:
        with descendants.adopted():  # seen, that is, also when they fled into a session of their own
            for job in jobs:
                before = _threads(), descendants.living(), set(tools.public(scope))
                verdict = _verdict(job, scope)
                if verdict == "ok" and (_threads() > before[0] or descendants.living() - before[1]):
                    verdict = sorted(set(tools.public(scope)) - before[2])
                os.write(answers, json.dumps(verdict).encode() + b"\n")
        os._exit(0)
    os.waitpid(pid, 0)
    descendants.end()
    with open(answers, "rb") as file:
        file.seek(0)
        return [json.loads(line) for line in file]


def _verdict(job, scope):
    """`ok`, or what went wrong."""
    try:
        job(scope)
    except BaseException as error:
        return brief(error)
    return "ok"


def _threads():
    return len(os.listdir("/proc/self/task"))
