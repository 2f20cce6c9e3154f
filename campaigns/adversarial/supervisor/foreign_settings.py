"""Tries to change limits, priorities and scheduling of broker and zygote, directly and through groups and users."""

import ctypes
import errno
import os
import resource

libc = ctypes.CDLL(None, use_errno=True)
broker, zygote, own = 1, os.getppid(), os.getpid()


def outcome(action):
    try:
        result = action()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done" if result != -1 else errno.errorcode[ctypes.get_errno()]


def ioprio(which, who):
    return libc.syscall(numbers["ioprio_set"], which, who, (3 << 13) | 7)


found = {}
for name, pid in (("broker", broker), ("zygote", zygote)):
    group = os.getpgid(pid)
    found[name] = {
        "prlimit NOFILE": outcome(lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))),
        "prlimit CPU": outcome(lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0))),
        "setpriority": outcome(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        "setpriority PGRP": outcome(lambda: os.setpriority(os.PRIO_PGRP, group, 19)),
        "ioprio_set": outcome(lambda: ioprio(1, pid)),
        "ioprio_set PGRP": outcome(lambda: ioprio(2, group)),
        "sched_setaffinity": outcome(lambda: os.sched_setaffinity(pid, {0})),
        "SCHED_IDLE": outcome(lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))),
        "sched_setparam": outcome(lambda: os.sched_setparam(pid, os.sched_param(0))),
    }
found["all"] = {
    "setpriority USER 0": outcome(lambda: os.setpriority(os.PRIO_USER, 0, 19)),
    "setpriority USER": outcome(lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19)),
    "setpriority PGRP 0": outcome(lambda: os.setpriority(os.PRIO_PGRP, 0, 19)),
    "ioprio_set USER": outcome(lambda: ioprio(3, os.getuid())),
    "ioprio_set USER 0": outcome(lambda: ioprio(3, 0)),
    "ioprio_set PGRP 0": outcome(lambda: ioprio(2, 0)),
}
# A script may change all of these for itself.
found["itself"] = {
    "prlimit": outcome(lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64))),
    "setrlimit": outcome(lambda: resource.setrlimit(resource.RLIMIT_CPU, (500, 500))),
    "nice": outcome(lambda: os.nice(5)),
    "setpriority": outcome(lambda: os.setpriority(os.PRIO_PROCESS, 0, 19)),
    "ioprio_set": outcome(lambda: ioprio(1, 0)),
    "sched_setaffinity": outcome(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
    "SCHED_IDLE": outcome(lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))),
}
emit_result(found)
