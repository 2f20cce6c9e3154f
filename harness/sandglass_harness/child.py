"""The process of one script: made by the zygote, told what to run by the broker, gone when the script is done."""

import gc
import json
import os
import resource
import signal
import struct
import sys
import time

from . import emit, explain, host_tools, runtime
from .syscalls import set_dumpable

FRAME_FD = 3


def prepare(config):
    """Called in the zygote, once: what every child inherits as it is. Each line here is one that no run pays for."""
    for name, limits in config["rlimits"].items():
        _lower(getattr(resource, name), *limits)
    os.chdir(config["workspace"])
    sys.path.insert(0, config["workspace"])
    sys.argv = [""]
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = _text_stream(1)
    sys.stderr = sys.__stderr__ = _text_stream(2)
    emit.install_clock()


class Ahead:
    """What was loaded before any script: globals, what each run loads itself, and the names that this adds."""

    def __init__(self, base_globals, loaders, added):
        self.base_globals, self.loaders, self.added = base_globals, loaders, added


def live(ahead, fds, checks=False):
    """Everything a forked child does; never returns. `fds` are the frame socket, stdout and stderr; `checks` tells
    whether scripts are only checked here."""
    try:
        _become_a_script_process(fds)
        emitter = emit.Emitter(FRAME_FD)
        emit.use(emitter)
        if checks:
            code = _check_on(emitter, ahead)
        else:
            runtime.rehearse()
            code = _run(_receive(), emitter, ahead)
    except BaseException:
        code = 70
    os._exit(code)


def _become_a_script_process(fds):
    os.setsid()
    # Out of the way first: one of the targets may be one of the sources.
    high = [_above(fd, 16) for fd in fds]
    for source, target in zip(high, (FRAME_FD, 1, 2)):
        os.dup2(source, target, inheritable=target < 3)
    os.closerange(4, 1 << 20)
    # A descriptor of its own: flags of one that all children share would carry data from run to run.
    os.close(0)
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
    # Below the broker, which shares the sandbox's part of the processor with all that the script starts.
    os.setpriority(os.PRIO_PROCESS, 0, 10)
    set_dumpable(True)
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(fd, b"1000")
    os.close(fd)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if "numpy.random" in sys.modules:  # its generator was forked along: every run would draw the same numbers
        sys.modules["numpy.random"].seed()
    gc.enable()


def _above(fd, lowest):
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)


def _lower(which, soft, hard):
    _, most = resource.getrlimit(which)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    if (soft, hard) == resource.getrlimit(which):
        return
    try:
        resource.setrlimit(which, (soft, hard))
    except ValueError:
        # gVisor refuses to change limits of what it does not have.
        if which not in (resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE):
            raise


def _text_stream(fd):
    return open(fd, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def _receive():
    """The request of the one run of this process: a length, then JSON. The end of the stream means: not needed."""
    head = _exactly(4)
    return json.loads(_exactly(struct.unpack("=I", head)[0]))


def _exactly(count):
    data = bytearray()
    while len(data) < count:
        piece = os.read(FRAME_FD, min(count - len(data), 1 << 20))
        if not piece:
            os._exit(0)
        data += piece
    return bytes(data)


def _check_on(emitter, ahead):
    """One check after the other, until the broker has no more, or one that did not end well."""
    from . import checker

    checker.warm_up()  # writes to the pages that a check writes to
    while True:
        code = _run(_receive(), emitter, ahead)
        if code:
            return code
        gc.collect()  # the answer is out


def _check(request, emitter, ahead):
    from . import checker  # loaded ahead where sandboxes are for checks

    asked = request["check"]
    asked["names"] += [*ahead.base_globals, *ahead.added]
    emitter.send({"type": "check_result", "violations": checker.check(request["script"], **asked)})
    return 0


def _host_tools(signatures, sources, emitter):
    if not signatures and not sources:
        return None
    stubs = {source["name"]: source["stub"] for source in sources}
    return host_tools.functions(signatures, host_tools.Bridge(FRAME_FD, emitter), stubs)


def _run(request, emitter, ahead):
    os.environ.update(request["secrets"])
    explain.hide(request["secrets"])
    limits, sources = request["limits"], request.get("tool_sources") or ()
    if limits.get("pids"):
        _lower(resource.RLIMIT_NPROC, limits["pids"], limits["pids"])
    if limits.get("memory_bytes"):
        _lower(resource.RLIMIT_AS, limits["memory_bytes"], limits["memory_bytes"])
    code = None
    try:
        emit.arm(request["deadline"] - time.monotonic())
        if request.get("check"):
            code = _check(request, emitter, ahead)
        else:
            _, code = runtime.run_script(
                request["script"],
                emitter,
                base_globals=ahead.base_globals,
                loaders=ahead.loaders,
                tools=_host_tools(request.get("tools") or (), sources, emitter),
                tool_sources=sources,
                inputs=request["inputs"],
                timeout_text=request["timeout_text"],
            )
        emit.disarm()
    except emit.ScriptTimeout:
        if code is None:  # else it came when the script was done
            code = 1
            runtime.tell_timeout(emitter, request["timeout_text"])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    try:
        os.write(FRAME_FD, b'{"type":"finished"}\n')
    except OSError:
        pass
    return code
