"""Loads tool files and modules before the first script. Each is first tried in a process of its own.

Code that starts a thread or a process is loaded in each run instead, because threads do not survive a fork, and processes do
not survive a run.
"""

import functools
import importlib
import json
import os

from . import descendants, tools
from .explain import describe_briefly

MAX_FAILED = 100


def load(config):
    """Returns (globals for scripts, loaders of a child, names that these add, report of what was loaded and what failed).

    A loader is a pair: a name for messages, and a function that takes the globals.
    """
    loop = tools.ToolLoop()
    scope = tools.fresh_scope()
    files = tools.list_tool_files(config["tools"]) if config["tools"] else []
    if files:
        import asyncio  # noqa: F401 - once, for async tools; only if there are tools, because it slows each fork and each exit
    jobs = [("preload", name, _guard_forks(_make_importer(name))) for name in config["preload"]]
    jobs += [("tools", os.path.basename(path), _guard_forks(functools.partial(tools.load_file, path, loop=loop))) for path in files]
    report = {"tools": {"loaded": [], "failed": []}, "preload": {"loaded": [], "failed": [], "deferred": []}}
    loaders, added = [], []
    with descendants.adopt_orphans():
        verdicts = _try_jobs([job for _, _, job in jobs], scope)
        for (kind, name, job), verdict in zip(jobs, verdicts):
            if verdict == "ok":
                verdict = _try_job(job, scope)  # loading may fail the second time
            if isinstance(verdict, list):
                added += verdict
                what = "the tool file" if kind == "tools" else "the preloaded module"
                loaders.append((f"{what} {name}", job))
                report[kind].setdefault("deferred", []).append(name)
            elif verdict == "ok":
                report[kind]["loaded"].append(name)
            elif len(report[kind]["failed"]) < MAX_FAILED:  # the report has a bounded size
                report[kind]["failed"].append({"name": name, "message": verdict})
    deferred = report["tools"].pop("deferred", [])
    report["tools"]["loaded"] += deferred
    report["preload"]["deferred"] += deferred
    return tools.select_public(scope), loaders, added, report


def _make_importer(name):
    def run(_scope):
        importlib.import_module(name)

    return run


def _guard_forks(job):
    """Wraps a job that may fork: a child that returns from it ends."""

    def run(scope):
        process = os.getpid()
        try:
            job(scope)
        finally:
            if os.getpid() != process:
                os._exit(0)

    return run


def _try_jobs(jobs, scope):
    """Returns a verdict for each job: `ok`, or the error, or, if each run must do the job, the list of names that it adds. If a
    job kills its process, the remaining jobs are tried in a new one."""
    verdicts = []
    while len(verdicts) < len(jobs):
        verdicts += _try_in_a_process(jobs[len(verdicts) :], scope)
        if len(verdicts) < len(jobs):
            verdicts.append("its process died while it was loaded")
    return verdicts


def _try_in_a_process(jobs, scope):
    answers = os.memfd_create("verdicts")  # not a pipe, which a process that inherited it would keep open
    pid = os.fork()
    if pid == 0:
        with descendants.adopt_orphans():  # so that descendants that called setsid() are found as well
            for job in jobs:
                before = _count_threads(), descendants.find_living(), set(tools.select_public(scope))
                verdict = _try_job(job, scope)
                if verdict == "ok" and (_count_threads() > before[0] or descendants.find_living() - before[1]):
                    verdict = sorted(set(tools.select_public(scope)) - before[2])
                os.write(answers, json.dumps(verdict).encode() + b"\n")
        os._exit(0)
    os.waitpid(pid, 0)
    descendants.end()
    with open(answers, "rb") as file:
        file.seek(0)
        return [json.loads(line) for line in file]


def _try_job(job, scope):
    """Runs a job. Returns `ok`, or the error."""
    try:
        job(scope)
    except BaseException as error:
        return describe_briefly(error)
    return "ok"


def _count_threads():
    return len(os.listdir("/proc/self/task"))
