"""The process of one script. The zygote forks it, the broker sends it a request, and it ends with the script."""

import _signal
import fcntl
import gc
import os
import resource
import select  # noqa: F401 - for tool_endpoint, imported before the workspace is on the path
import sys

from ..libc import set_dumpable
from . import emit, host_tools, script_process
from .script_process import FRAME_FD

NICE = 10


def prepare(config):
    """Prepares, once and in the zygote, the state that every child inherits, so that no run spends time on it."""
    for name, limits in config["rlimits"].items():
        lower(getattr(resource, name), *limits)
    os.chdir(config["workspace"])
    sys.path.insert(0, config["workspace"])
    _open_streams()


def _open_streams():
    """Opens the streams while their descriptors are a pipe, as they are in each script. Python checks only once whether a stream is
    seekable, and `sys.stdout.reconfigure()` would fail for a seekable one."""
    read, write = os.pipe()
    before = [os.dup(fd) for fd in (1, 2)]
    for fd in (1, 2):
        os.dup2(write, fd)
    script_process.open_streams()
    for fd, own in zip((1, 2), before):
        os.dup2(own, fd)
    for fd in (read, write, *before):
        os.close(fd)


def live(preloaded, emitter, fds, checks=False):
    """Runs a forked child to its end. Never returns. `fds` are the frame socket, stdout and stderr. With `checks`, it only
    checks scripts."""
    try:
        become_a_script_process(fds)
        open_up()
        emit.use(emitter)
        if checks:
            code = _check_on(emitter, preloaded)
        else:
            script_process.rehearse()
            home_files = script_process.find_home_files(preloaded)
            request = script_process.receive()
            # Only now: while this process waits, the broker counts the space in use, and wipes the files of refused requests.
            script_process.copy_home_files(home_files)
            code = run(request, emitter, preloaded)
    except BaseException:
        code = 70
    os._exit(code)


def become_a_script_process(fds):
    """Installs the frame socket, stdout and stderr of `fds`, and closes everything that only the harness may have. The process
    remains not dumpable, like the zygote."""
    os.setsid()
    if min(fds) <= FRAME_FD:  # first to high numbers, because a target may be one of the sources
        fds = [duplicate_above(fd, 16) for fd in fds]
    frames, out, err = fds
    os.dup2(frames, FRAME_FD, False)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(4, 1 << 20)
    # Opened anew, because the flags of a shared descriptor would carry data from run to run.
    os.close(0)
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
    # A lower priority than the broker's, which shares the sandbox's CPU time with everything that the script starts.
    if os.getpriority(os.PRIO_PROCESS, 0) < NICE:  # the host may have set a lower priority, which cannot be raised here
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())  # `signal` would make an enum member of each signal that was blocked
    if "numpy.random" in sys.modules:  # its state was forked as well, so every run would draw the same numbers
        sys.modules["numpy.random"].seed()
    gc.enable()


def open_up():
    """Makes this process dumpable like any other of its uid, and the first candidate for an OOM kill."""
    set_dumpable(True)
    _write_oom_score(b"1000")


def set_oom_score(score):
    """Sets how soon the kernel ends this process when it is out of memory, also after a script has cleared the dumpable flag, without which root
    owns the file."""
    try:
        _write_oom_score(score)
    except PermissionError:
        set_dumpable(True)
        try:
            _write_oom_score(score)
        finally:
            set_dumpable(False)


def _write_oom_score(score):
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        os.write(fd, score)
    finally:
        os.close(fd)


def duplicate_above(fd, lowest):
    """Returns a duplicate of a descriptor with at least this number."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)


def _check_on(emitter, preloaded):
    """Checks one script after the other, until the broker has no more, or a check fails."""
    from ..check import checker

    checker.warm_up()  # touches the memory pages that a check writes to
    while True:
        code = run(script_process.receive(), emitter, preloaded)
        if code:
            return code
        gc.collect()  # after the answer is sent


def run(request, emitter, preloaded):
    """Serves one request. Returns the exit code."""
    limits = request["limits"]
    if limits.get("pids"):
        lower(resource.RLIMIT_NPROC, limits["pids"], limits["pids"])
    if limits.get("memory_bytes"):
        lower(resource.RLIMIT_AS, limits["memory_bytes"], limits["memory_bytes"])
    return script_process.run(request, emitter, preloaded, lambda: _make_bridge(request.get("tool_endpoint"), emitter))


def _make_bridge(endpoint, emitter):
    if endpoint is None:
        return host_tools.Bridge(FRAME_FD, emitter)
    from . import tool_endpoint  # only here, because few runs need it

    try:
        connection = tool_endpoint.connect(endpoint, endpoint["execution_id"])
    except tool_endpoint.EndpointError as error:
        raise script_process.SetupError(f"the tools cannot be called: {error}") from None
    return host_tools.Bridge(FRAME_FD, connection, connection.read)


def lower(which, soft, hard):
    """Lowers a limit of this process. Does not exceed the current hard limit."""
    _, hard_limit = resource.getrlimit(which)
    if hard_limit != resource.RLIM_INFINITY:
        soft, hard = min(soft, hard_limit), min(hard, hard_limit)
    if (soft, hard) == resource.getrlimit(which):
        return
    try:
        resource.setrlimit(which, (soft, hard))
    except ValueError:
        # gVisor refuses to change the limits of features that it lacks.
        if which not in (resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE):
            raise
