"""A warm interpreter that forks the process of each script. It never sees a request, a secret or a result.

It talks to the broker alone, over a socket whose messages are one byte: S(pare), A(nswer), R(eap), K(ill) and, where one
kill can miss what is just being forked, L(asting kill).
"""

import _socket
import array
import gc
import json
import os
import signal
import struct
import sys
import time

from . import child, script_process, seccomp

KILL_SEC = 0.4  # below the time that the broker waits for the answer
_ALL_SIGNALS = signal.valid_signals()


def main(config, control_fd):
    """Loads what scripts need, then forks on command until the broker is gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    control = _socket.socket(fileno=control_fd)  # `socket` itself would cost every child memory
    for path in config["import_paths"]:
        sys.path.append(path)
    if config.get("installed"):
        from . import installed  # elsewhere, `site` would cost every child memory

        sys.path += installed.directories()
    _builtins_of_site()
    seccomp.load()
    ahead, loaded = script_process.Ahead({}), {"tools": _nothing(), "preload": {**_nothing(), "deferred": []}}
    if config["tools"] or config["preload"]:
        from . import preloading

        *all_ahead, loaded = preloading.load(config)
        ahead = script_process.Ahead(*all_ahead)
    if config.get("checker"):
        from . import checker

        checker.warm_up()
    child.prepare(config)
    _warm_up()
    if config.get("sealed"):
        os.dup2(0, 2)  # as in the broker: standard error is the machinery's own
    control.send(json.dumps(loaded).encode())
    _serve(control, ahead, config.get("checker", False))


def _nothing():
    return {"loaded": [], "failed": []}


def _builtins_of_site():
    """exit() and quit(), which the interpreter lacks when it starts without `site`."""
    import _sitebuiltins
    import builtins

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")


def _warm_up():
    """Children share the pages of what was touched here."""
    script_process.warm_up()
    gc.collect()
    gc.disable()
    gc.freeze()


def _serve(control, ahead, checks):
    pid = 0
    while True:
        message, fds = _receive_with_fds(control)
        if not message:
            os._exit(0)
        if message == b"S":
            if pid:
                os.waitpid(pid, 0)
                _reap_others()
            _forget_signals()
            pid = os.fork()
            if pid == 0:
                control.detach()
                child.live(ahead, fds, checks)
            for fd in fds:
                os.close(fd)
            _answer(control, pid)
        elif message == b"A":
            _answer(control, 0)
        else:
            if message == b"K":
                _kill_everything()
            elif message == b"L":
                _kill_as_long_as_anything_lives()
            _, status = os.waitpid(pid, 0)
            _reap_others()
            pid = 0
            _answer(control, status)


def _answer(control, number):
    try:
        control.send(struct.pack("=i", number))
    except BrokenPipeError:  # the broker is gone, and takes everything with it: no traceback beside its last words
        os._exit(0)


def _forget_signals():
    """Signals that a script queued here are blocked, not gone: they would carry data, and take slots, from run to run."""
    while signal.sigtimedwait(_ALL_SIGNALS, 0) is not None:
        pass


def _reap_others():
    """A script can make siblings of itself: children of this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _receive_with_fds(control):
    try:
        message, ancillary, _, _ = control.recvmsg(16, _socket.CMSG_LEN(3 * 4))
    except ConnectionResetError:  # the broker ended with an answer unread
        return b"", []
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % 4])
    return message, list(fds)


def _kill_everything():
    """One pass in the kernel over the whole pid namespace, which spares only this process and PID 1."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _kill_as_long_as_anything_lives():
    """In gVisor one pass over the namespace misses what is forked meanwhile; under a fork bomb, most of the time."""
    give_up_at = time.monotonic() + KILL_SEC
    spared = {"1", str(os.getpid())}
    while True:
        _kill_everything()
        others = [name for name in os.listdir("/proc") if name.isdigit() and name not in spared]
        # Zombies of this process stay until it is done; those of others are the broker's.
        if all(_is_zombie(pid) for pid in others) or time.monotonic() > give_up_at:
            return


def _is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True
