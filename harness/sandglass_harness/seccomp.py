"""One filter of system calls for every Linux engine, loaded by the zygote before its first fork.

It shuts what a script of the same uid could use against the broker and the zygote, what outlives its processes, what
no network namespace confines, and rarely audited kernel doors. See docs/system-calls.md.
"""

import ctypes
import errno
import os
import struct

from .syscalls import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prctl

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Numbers from 424 on are the same on every architecture.
_NEW = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "process_mrelease": 448, "open_tree_attr": 467,
}  # fmt: skip

NUMBERS = {
    "x86_64": {
        "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53, "setsockopt": 54, "clone": 56,
        "kill": 62,
        "semget": 64, "semop": 65, "semctl": 66, "shmdt": 67, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
        "fcntl": 72, "ptrace": 101, "syslog": 103, "rt_sigqueueinfo": 129, "setpriority": 141, "sched_setparam": 142,
        "sched_setscheduler": 144, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "adjtimex": 159, "chroot": 161,
        "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "tkill": 200,
        "sched_setaffinity": 203, "lookup_dcookie": 212, "semtimedop": 220, "clock_settime": 227, "tgkill": 234,
        "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242, "mq_timedreceive": 243, "mq_notify": 244,
        "mq_getsetattr": 245, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251,
        "migrate_pages": 256, "unshare": 272, "move_pages": 279, "rt_tgsigqueueinfo": 297, "perf_event_open": 298,
        "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "sched_setattr": 314, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, **_NEW,
    },
    "aarch64": {
        "lookup_dcookie": 18, "fcntl": 25, "ioctl": 29, "ioprio_set": 30, "umount2": 39, "mount": 40, "pivot_root": 41,
        "chroot": 51, "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "sched_setparam": 118,
        "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129, "tkill": 130, "tgkill": 131,
        "rt_sigqueueinfo": 138, "setpriority": 140, "reboot": 142, "settimeofday": 170, "adjtimex": 171, "mq_open": 180,
        "mq_unlink": 181, "mq_timedsend": 182, "mq_timedreceive": 183, "mq_notify": 184, "mq_getsetattr": 185,
        "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192,
        "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196, "shmdt": 197, "socket": 198, "socketpair": 199, "setsockopt": 208,
        "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225,
        "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "prlimit64": 261,
        "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "sched_setattr": 274,
        "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_NEW,
    },
}  # fmt: skip

# Refused with EPERM whatever the arguments are.
REFUSED = (
    # a ring does what no filter sees
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    # other processes' memory, descriptors and advice
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
    "migrate_pages", "move_pages",
    # kernel doors that no script needs
    "bpf", "userfaultfd", "perf_event_open", "fanotify_init", "name_to_handle_at", "open_by_handle_at",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
    "acct", "quotactl", "quotactl_fd", "syslog", "lookup_dcookie", "vhangup", "iopl", "ioperm", "modify_ldt",
    "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
    # mounts and namespaces
    "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree",
    "open_tree_attr", "mount_setattr", "unshare", "setns",
    # what outlives its processes and would carry data from one run to the next
    "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv",
    "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
    "keyctl", "add_key", "request_key",
)  # fmt: skip

# Allowed on the caller itself (pid argument 0), refused on any other process: broker and zygote have the same uid.
OWN_PID_ONLY = ("sched_setparam", "sched_setscheduler", "sched_setattr", "sched_setaffinity")

# Refused on PID 1, the broker. Linux shields it from every signal of its own namespace; gVisor's kernel does not.
NOT_THE_BROKER = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open")

# Families that a network namespace confines. AF_UNIX, AF_INET, AF_INET6.
SOCKET_FAMILIES = (1, 2, 10)

_CLONE_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that clone(2) takes
_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP = 0x5412, 0x541C, 0x8901, 0x8902
_F_SETOWN, _F_SETOWN_EX = 8, 15
_IPPROTO_IPV6, _IPV6_FLOWLABEL_MGR = 41, 32
_X32_BIT = 0x40000000

_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGS = 0, 4, 16


def _errno(number):
    return 0x00050000 | number


def _low(arg):
    return _ARGS + 8 * arg


def build(machine):
    """The BPF program for a machine, as a list of (code, jump if true, jump if false, constant)."""
    numbers = NUMBERS[machine]
    program = [(_LD, 0, 0, _ARCH), (_JEQ, 1, 0, AUDIT_ARCH[machine]), (_RET, 0, 0, _KILL), (_LD, 0, 0, _NR)]
    if machine == "x86_64":
        program += [(_JGE, 0, 1, _X32_BIT), (_RET, 0, 0, _KILL)]
    eperm = _errno(errno.EPERM)

    def rule(name, body):
        if name in numbers:
            program.append((_JEQ, 0, len(body), numbers[name]))
            program.extend(body)

    for name in REFUSED:
        rule(name, [(_RET, 0, 0, eperm)])
    # A program falls back to clone(2), whose flags can be looked at.
    rule("clone3", [(_RET, 0, 0, _errno(errno.ENOSYS))])
    rule("clone", [(_LD, 0, 0, _low(0)), (_JSET, 0, 1, _CLONE_NAMESPACES), (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW)])
    families = [(_JEQ, len(SOCKET_FAMILIES) - i, 0, family) for i, family in enumerate(SOCKET_FAMILIES)]
    rule(
        "socket",
        [(_LD, 0, 0, _low(0)), *families, (_RET, 0, 0, _errno(errno.EAFNOSUPPORT)), (_RET, 0, 0, _ALLOW)],
    )
    rule(
        "socketpair",
        [(_LD, 0, 0, _low(0)), (_JEQ, 1, 0, 1), (_RET, 0, 0, _errno(errno.EAFNOSUPPORT)), (_RET, 0, 0, _ALLOW)],
    )
    # A label keeps an address of 16 bytes, which /proc/net/ip6_flowlabel shows, up to 150 s beyond its socket.
    rule(
        "setsockopt",
        [
            (_LD, 0, 0, _low(1)), (_JEQ, 0, 3, _IPPROTO_IPV6),
            (_LD, 0, 0, _low(2)), (_JEQ, 0, 1, _IPV6_FLOWLABEL_MGR),
            (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW),
        ],
    )  # fmt: skip
    for name in OWN_PID_ONLY:
        rule(name, [(_LD, 0, 0, _low(0)), (_JEQ, 1, 0, 0), (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW)])
    # prlimit64(pid, resource, new, old): reading anybody's is harmless, setting is for the caller itself.
    rule(
        "prlimit64",
        [
            (_LD, 0, 0, _low(0)), (_JEQ, 5, 0, 0),
            (_LD, 0, 0, _low(2)), (_JEQ, 0, 2, 0),
            (_LD, 0, 0, _low(2) + 4), (_JEQ, 1, 0, 0),
            (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW),
        ],
    )  # fmt: skip
    # (PRIO_PROCESS, 0) and (IOPRIO_WHO_PROCESS, 0): PRIO_USER 0 would renice the broker too.
    for name, which in (("setpriority", 0), ("ioprio_set", 1)):
        rule(
            name,
            [
                (_LD, 0, 0, _low(0)), (_JEQ, 0, 2, which),
                (_LD, 0, 0, _low(1)), (_JEQ, 1, 0, 0),
                (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW),
            ],
        )  # fmt: skip
    for name in NOT_THE_BROKER:
        rule(name, [(_LD, 0, 0, _low(0)), (_JEQ, 0, 1, 1), (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW)])
    # The owner of a descriptor is sent signals when there is something to read. -1 is the broker's process group.
    rule(
        "fcntl",
        [
            (_LD, 0, 0, _low(1)), (_JEQ, 4, 0, _F_SETOWN_EX), (_JEQ, 0, 4, _F_SETOWN),
            (_LD, 0, 0, _low(2)), (_JEQ, 1, 0, 1), (_JEQ, 0, 1, 0xFFFFFFFF),
            (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW),
        ],
    )  # fmt: skip
    commands = (_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP)
    rule(
        "ioctl",
        [
            (_LD, 0, 0, _low(1)), *[(_JEQ, len(commands) - i, 0, command) for i, command in enumerate(commands)],
            (_RET, 0, 0, _ALLOW), (_RET, 0, 0, eperm),
        ],
    )  # fmt: skip
    program.append((_RET, 0, 0, _ALLOW))
    return program


def load():
    """Loads the filter into this process for good; every process that it forks has it too."""
    machine = os.uname().machine
    if machine not in NUMBERS:
        raise OSError(errno.ENOSYS, "no system call filter for " + machine)
    program = build(machine)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prog = Program(len(program), ctypes.addressof(code))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(prog))
