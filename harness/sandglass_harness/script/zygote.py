"""A warm interpreter that forks the process of each script. It never sees a request, a secret or a result.

It communicates only with the broker, over a socket with messages of one byte: S(pare), A(nswer), R(eap), K(ill) and L(asting
kill), for kernels where one kill can miss a process that is being forked.
"""

import _socket
import gc
import json
import os
import signal
import sys
import threading
import time

from . import child, emit, script_process, seccomp, show_hooks
from .commands import answer, discard_signals, reap_others, receive_with_fds

REHEARSALS = 10  # an interpreter adapts code at the eighth call or earlier
KILL_SEC = 0.4  # shorter than the broker's limit for the answer


def main(config, control_fd):
    """Loads the modules and tools for scripts, then forks children at the broker's command until the broker is gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    control = _socket.socket(fileno=control_fd)  # because `socket` would take memory in every child
    for path in config["import_paths"]:
        sys.path.append(path)
    if config["import_paths"]:
        # For interpreters that scripts start, such as the workers of joblib. This interpreter ignores it.
        os.environ["PYTHONPATH"] = os.pathsep.join(config["import_paths"])
    if config.get("installed"):
        from . import installed  # only here, because `site` takes memory in every child

        sys.path += installed.find_directories()
    _add_builtins_of_site()
    is_serial = False
    if config.get("activities"):
        from . import keeper, landlock  # only here, because sandboxes of a pool do not need them

        is_serial = config.get("sealed", False) or not keeper.is_possible()
        seccomp.load(None if landlock.can_scope_signals() else os.getpid())
    else:
        seccomp.load()
    show_hooks.install()
    all_preloaded, loaded = ({},), {"tools": _empty_report(), "preload": {**_empty_report(), "deferred": []}}
    if config["tools"] or config["preload"]:
        from . import preloading

        *all_preloaded, loaded = preloading.load(config)
    preloaded = script_process.Preloaded(*all_preloaded, has_packages=bool(config["import_paths"]))
    if config.get("checker"):
        from ..check import checker

        checker.warm_up()
    child.prepare(config)
    _warm_up()
    if config.get("sealed"):
        os.dup2(0, 2)  # to /dev/null, because scripts could open it and write to it
    if config.get("activities"):
        loaded["is_serial"] = is_serial
    control.send(json.dumps(loaded).encode())
    if not config.get("activities"):
        checks = config.get("checker", False)
        emitter = emit.Emitter(script_process.FRAME_FD)
        _serve(control, lambda fds: child.live(preloaded, emitter, fds, checks))
    elif is_serial:
        _serve(control, lambda fds: keeper.live(fds, preloaded))
    else:
        keeper.serve(control, preloaded)


def _empty_report():
    return {"loaded": [], "failed": []}


def _add_builtins_of_site():
    """Adds exit() and quit(), which an interpreter without `site` lacks."""
    import _sitebuiltins
    import builtins

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")


def _warm_up():
    """Touches memory pages that children share afterwards. The interpreter writes to code that has run some times, to adapt it;
    so the code of every run is run here until that is over, and not in each child again."""
    script_process.warm_up()
    null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
    for _ in range(REHEARSALS):
        script_process.rehearse(null)
        if threading.active_count() == 1:  # a preloaded module can have started others, which it would declare dead
            threading._after_fork()  # the first code of every child
    os.close(null)
    gc.collect()
    gc.disable()
    gc.freeze()


def _serve(control, live):
    """Forks one process after the other. The child calls `live(fds)`, which never returns."""
    pid = 0
    while True:
        message, fds = receive_with_fds(control)
        if not message:
            os._exit(0)
        if message == b"S":
            if pid:
                os.waitpid(pid, 0)
                reap_others()
            discard_signals()
            pid = os.fork()
            if pid == 0:
                control.detach()
                live(fds)
            for fd in fds:
                os.close(fd)
            answer(control, pid)
        elif message == b"A":
            answer(control, 0)
        else:
            if message == b"K":
                _kill_everything()
            elif message == b"L":
                _kill_until_none_lives()
            _, status = os.waitpid(pid, 0)
            reap_others()
            pid = 0
            answer(control, status)


def _kill_everything():
    """Kills every process of the pid namespace except this one and PID 1, with one kill(-1)."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _kill_until_none_lives():
    """Repeats kill(-1) until no other process lives. In gVisor one call misses processes that are being forked, which under a fork
    bomb is the normal case. In a workspace the filter refuses kill(-1), and each process is killed by its pid."""
    give_up_at = time.monotonic() + KILL_SEC
    spared = {"1", str(os.getpid())}
    while True:
        try:
            _kill_everything()
        except PermissionError:
            for pid in _others(spared):
                _kill(pid)
        # Zombies of this process are reaped later; the broker reaps the others.
        if all(_is_zombie(pid) for pid in _others(spared)) or time.monotonic() > give_up_at:
            return


def _others(spared):
    return [name for name in os.listdir("/proc") if name.isdigit() and name not in spared]


def _kill(pid):
    try:
        os.kill(int(pid), signal.SIGKILL)
    except ProcessLookupError:
        pass


def _is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0] == b"Z" and int(fields[17]) <= 1  # the main thread may end before the others
    except (OSError, IndexError, ValueError):
        return True
