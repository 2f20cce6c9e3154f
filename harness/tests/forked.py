"""Runs a function in a forked process, so that signals, threads and module state of a test touch nothing else."""

import json
import os
import sys
import traceback

from sandglass_harness.script import emit, runtime


class Collecting(emit.Emitter):
    """Keeps the frames for the host instead of writing them."""

    def __init__(self):
        super().__init__(-1)
        self.frames = []

    def send(self, frame):
        if frame["type"] != "setup_over":  # which the broker keeps to itself
            self.frames.append(frame)

    def send_line(self, line):
        self.send(json.loads(line))

    hold_line = send_line


def call(function, *args, **kwargs):
    """Returns the result of `function` in a process of its own, as JSON carries it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            answer = {"value": function(*args, **kwargs)}
        except BaseException:
            answer = {"broken": traceback.format_exc()}
        with open(write, "w", encoding="utf-8", errors="backslashreplace") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as answers:
        text = answers.read()
    _, status = os.waitpid(pid, 0)
    if not text:
        raise AssertionError(f"the process ended with wait status {status}")
    answer = json.loads(text)
    if "broken" in answer:
        raise AssertionError(answer["broken"])
    return answer["value"]


def run(source, **options):
    """Runs a script in place in a process of its own: (frames, [ending, exit code])."""
    return call(_run, source, **options)


def _run(source, timeout=None, **options):
    emitter = Collecting()
    if timeout is not None:
        emit.install_clock()
        options.setdefault("timeout_text", f"{timeout:g}")
        emit.arm(timeout)
    sys.stdout = open(os.devnull, "w")
    ending = runtime.run_script(source, emitter, **options)
    emit.disarm()
    return emitter.frames, ending
