"""One filter of system calls for every Linux engine, loaded by the zygote before its first fork.

It refuses calls that a script of the same uid could use against the broker and the zygote, calls whose effects outlive its
processes or escape its network namespace, and rarely audited parts of the kernel. See docs/system-calls.md.
"""

import ctypes
import errno
import os
import struct

from ..libc import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prctl

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Numbers from 424 on are the same on every architecture.
_NEW = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "process_mrelease": 448, "open_tree_attr": 467,
}  # fmt: skip

NUMBERS = {
    "x86_64": {
        "mmap": 9, "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53,
        "setsockopt": 54, "clone": 56, "kill": 62,
        "semget": 64, "semop": 65, "semctl": 66, "shmdt": 67, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
        "fcntl": 72, "ptrace": 101, "syslog": 103, "rt_sigqueueinfo": 129, "setpriority": 141, "sched_setparam": 142,
        "sched_setscheduler": 144, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "prctl": 157, "adjtimex": 159, "chroot": 161,
        "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "tkill": 200,
        "sched_setaffinity": 203, "io_setup": 206, "lookup_dcookie": 212, "semtimedop": 220, "clock_settime": 227,
        "tgkill": 234,
        "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242, "mq_timedreceive": 243, "mq_notify": 244,
        "mq_getsetattr": 245, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251,
        "migrate_pages": 256, "unshare": 272, "move_pages": 279, "rt_tgsigqueueinfo": 297, "perf_event_open": 298,
        "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "sched_setattr": 314, "seccomp": 317, "memfd_create": 319, "kexec_file_load": 320, "bpf": 321,
        "userfaultfd": 323, **_NEW,
    },
    "aarch64": {
        "io_setup": 0, "lookup_dcookie": 18, "fcntl": 25, "ioctl": 29, "ioprio_set": 30, "umount2": 39, "mount": 40,
        "pivot_root": 41,
        "chroot": 51, "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "sched_setparam": 118,
        "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129, "tkill": 130, "tgkill": 131,
        "rt_sigqueueinfo": 138, "setpriority": 140, "reboot": 142, "prctl": 167, "settimeofday": 170, "adjtimex": 171, "mq_open": 180,
        "mq_unlink": 181, "mq_timedsend": 182, "mq_timedreceive": 183, "mq_notify": 184, "mq_getsetattr": 185,
        "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192,
        "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196, "shmdt": 197, "socket": 198, "socketpair": 199, "setsockopt": 208,
        "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "mmap": 222, "swapon": 224, "swapoff": 225,
        "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "prlimit64": 261,
        "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "sched_setattr": 274,
        "seccomp": 277, "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_NEW,
    },
}  # fmt: skip

# Refused with EPERM, whatever the arguments are.
REFUSED = (
    # io_uring operations bypass seccomp
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    # its contexts count towards a limit of the whole machine (fs.aio-max-nr)
    "io_setup",
    # other processes' memory, descriptors and madvise hints
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
    "migrate_pages", "move_pages",
    # parts of the kernel that no script needs
    "bpf", "userfaultfd", "perf_event_open", "fanotify_init", "name_to_handle_at", "open_by_handle_at",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
    "acct", "quotactl", "quotactl_fd", "syslog", "lookup_dcookie", "vhangup", "iopl", "ioperm", "modify_ldt",
    "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
    # mounts and namespaces
    "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree",
    "open_tree_attr", "mount_setattr", "unshare", "setns",
    # objects that outlive their processes and could carry data from run to run
    "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv",
    "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
    "keyctl", "add_key", "request_key",
)  # fmt: skip

# Allowed on the caller itself (pid 0), refused on other processes: broker and zygote have the same uid.
OWN_PID_ONLY = ("sched_setparam", "sched_setscheduler", "sched_setattr", "sched_setaffinity")

# Refused on PID 1, the broker. Linux protects it from signals of its own namespace; gVisor's kernel does not.
NOT_THE_BROKER = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open")

_UNIX, _INET, _INET6, _STREAM, _DGRAM, _RAW = 1, 2, 10, 1, 2, 3

# Families that a network namespace confines.
SOCKET_FAMILIES = (_UNIX, _INET, _INET6)

# The IP sockets: (family, type) and their protocols. For an unknown type or protocol, the kernel starts modprobe on the machine,
# and the module stays loaded.
SOCKETS = {
    (_INET, _STREAM): (0, 6), (_INET, _DGRAM): (0, 17, 1), (_INET6, _STREAM): (0, 6), (_INET6, _DGRAM): (0, 17, 58),
}  # fmt: skip

# Refused socket options: (level, options).
SOCKET_OPTIONS = (
    # SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF: the memory of compiled filters
    # counts towards a limit of the whole machine (net.core.bpf_jit_limit), not of a control group
    (1, (26, 50, 51, 52)),
    # IP_ADD_MEMBERSHIP, IP_ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_GROUP, MCAST_JOIN_SOURCE_GROUP: the kernel leaves a
    # group, and counts that, seconds after the socket is closed
    (0, (35, 39, 42, 46)),
    # IPV6_ADD_MEMBERSHIP, IPV6_JOIN_ANYCAST, MCAST_JOIN_GROUP, MCAST_JOIN_SOURCE_GROUP. IPV6_FLOWLABEL_MGR: a label keeps an
    # address of 16 bytes for up to 150 s after its socket, and /proc/net/ip6_flowlabel shows it
    (41, (20, 27, 42, 46, 32)),
    # TCP_MD5SIG, TCP_ULP, TCP_MD5SIG_EXT, TCP_AO_ADD_KEY: the kernel loads ciphers and digests for any user: those of
    # TCP_AO_ADD_KEY by the caller's choice of name, and those of TLS once TCP_ULP has selected it
    (6, (14, 31, 32, 38)),
)

# The filter turns SO_LINGER into a no-op. Otherwise the last process to close such a socket would wait for its peer, even if the
# socket is non-blocking. That could be the broker, to which a script can send the descriptor.
_SOL_SOCKET, _SO_LINGER = 1, 13

_TYPE_MASK = 0xF  # without SOCK_NONBLOCK and SOCK_CLOEXEC
_CLONE_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that clone(2) takes
# TIOCSTI and TIOCLINUX type into a terminal, FIOSETOWN and SIOCSPGRP are F_SETOWN.
_TYPING, _OWNING = (0x5412, 0x541C), (0x8901, 0x8902)
# TIOCSETD; SIOCGIFBR, SIOCSIFBR, SIOCBRADDBR, SIOCBRDELBR; SIOCGIFVLAN, SIOCSIFVLAN; SIOCADDDLCI, SIOCDELDLCI: the kernel loads
# a line discipline, bridge, 8021q or dlci before it checks for a capability.
_LOADING = (0x5423, 0x8940, 0x8941, 0x89A0, 0x89A1, 0x8982, 0x8983, 0x8980, 0x8981)
_F_SETOWN, _F_SETOWN_EX = 8, 15
_F_SET_RW_HINT, _F_SET_FILE_RW_HINT = 1036, 1038
_SECCOMP_SET_MODE_FILTER = 1
_MAP_HUGETLB, _MFD_HUGETLB = 0x40000, 4
_X32_BIT = 0x40000000
_ALL = 0xFFFFFFFF  # -1: all processes of a namespace

_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_LD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGS = 0, 4, 16


def _errno(number):
    return 0x00050000 | number


def _low(arg):
    return _ARGS + 8 * arg


def _one_of(values):
    """Creates jumps that skip the next instruction if the loaded value is one of `values`."""
    return [(_JEQ, len(values) - i, 0, value) for i, value in enumerate(values)]


def _refuse_options():
    """Creates instructions that refuse SOCKET_OPTIONS and turn SO_LINGER into a no-op. The rule must end with ALLOW."""
    program = [(_LD, 0, 0, _low(1)), (_JEQ, 0, 3, _SOL_SOCKET), (_LD, 0, 0, _low(2)), (_JEQ, 0, 1, _SO_LINGER), (_RET, 0, 0, _errno(0))]
    for level, options in SOCKET_OPTIONS:
        body = [(_LD, 0, 0, _low(2)), *_one_of(options), (_RET, 0, 0, _ALLOW), (_RET, 0, 0, _errno(errno.EPERM))]
        program += [(_LD, 0, 0, _low(1)), (_JEQ, 0, len(body), level), *body]
    return program


def _decide_protocols():
    """Creates instructions that decide on the families and types of SOCKETS. The rule must end with a refusal."""
    program = []
    for (family, kind), protocols in SOCKETS.items():
        refused = (_RET, 0, 0, _errno(errno.EPROTONOSUPPORT))
        body = [(_LD, 0, 0, _low(2)), *_one_of(protocols), refused, (_RET, 0, 0, _ALLOW)]
        body = [(_LD, 0, 0, _low(1)), (_AND, 0, 0, _TYPE_MASK), (_JEQ, 0, len(body), kind), *body]
        program += [(_LD, 0, 0, _low(0)), (_JEQ, 0, len(body), family), *body]
    return program


def build(machine, zygote=None):
    """Builds the BPF program for a machine, as a list of (code, jump if true, jump if false, constant).

    With the pid of the zygote, the filter also refuses signals to the zygote and to all processes at once, by which one activity
    could end all others in the same trust domain.
    """
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
    # A filter cannot read the flags of clone3. Programs fall back to clone(2).
    rule("clone3", [(_RET, 0, 0, _errno(errno.ENOSYS))])
    rule("clone", [(_LD, 0, 0, _low(0)), (_JSET, 0, 1, _CLONE_NAMESPACES), (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW)])
    rule(
        "socket",
        [
            (_LD, 0, 0, _low(0)), *_one_of(SOCKET_FAMILIES), (_RET, 0, 0, _errno(errno.EAFNOSUPPORT)),
            (_JEQ, 0, 1, _UNIX), (_RET, 0, 0, _ALLOW),
            *_decide_protocols(),
            (_LD, 0, 0, _low(1)), (_AND, 0, 0, _TYPE_MASK), (_JEQ, 0, 1, _RAW), (_RET, 0, 0, eperm),
            (_RET, 0, 0, _errno(errno.ESOCKTNOSUPPORT)),
        ],
    )  # fmt: skip
    rule(
        "socketpair",
        [(_LD, 0, 0, _low(0)), (_JEQ, 1, 0, 1), (_RET, 0, 0, _errno(errno.EAFNOSUPPORT)), (_RET, 0, 0, _ALLOW)],
    )
    rule("setsockopt", [*_refuse_options(), (_RET, 0, 0, _ALLOW)])
    # Huge pages come from a pool of the machine, and no memory limit accounts for them.
    for name, flags, huge in (("mmap", 3, _MAP_HUGETLB), ("memfd_create", 1, _MFD_HUGETLB)):
        rule(
            name, [(_LD, 0, 0, _low(flags)), (_JSET, 0, 1, huge), (_RET, 0, 0, _errno(errno.ENOMEM)), (_RET, 0, 0, _ALLOW)]
        )
    # The memory of filters counts towards a limit of the whole machine (net.core.bpf_jit_limit), not of a control group. Programs
    # with optional filters continue after EINVAL, as on a kernel without filters.
    einval = _errno(errno.EINVAL)
    rule(
        "seccomp",
        [(_LD, 0, 0, _low(0)), (_JEQ, 0, 1, _SECCOMP_SET_MODE_FILTER), (_RET, 0, 0, einval), (_RET, 0, 0, _ALLOW)],
    )
    rule(
        "prctl",
        [
            (_LD, 0, 0, _low(0)), (_JEQ, 0, 3, PR_SET_SECCOMP),
            (_LD, 0, 0, _low(1)), (_JEQ, 0, 1, SECCOMP_MODE_FILTER),
            (_RET, 0, 0, einval), (_RET, 0, 0, _ALLOW),
        ],
    )  # fmt: skip
    for name in OWN_PID_ONLY:
        rule(name, [(_LD, 0, 0, _low(0)), (_JEQ, 1, 0, 0), (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW)])
    # prlimit64(pid, resource, new, old) may read the limits of any process, and change only those of the caller.
    rule(
        "prlimit64",
        [
            (_LD, 0, 0, _low(0)), (_JEQ, 5, 0, 0),
            (_LD, 0, 0, _low(2)), (_JEQ, 0, 2, 0),
            (_LD, 0, 0, _low(2) + 4), (_JEQ, 1, 0, 0),
            (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW),
        ],
    )  # fmt: skip
    # Only (PRIO_PROCESS, 0) and (IOPRIO_WHO_PROCESS, 0), because PRIO_USER 0 would renice the broker too.
    for name, which in (("setpriority", 0), ("ioprio_set", 1)):
        rule(
            name,
            [
                (_LD, 0, 0, _low(0)), (_JEQ, 0, 2, which),
                (_LD, 0, 0, _low(1)), (_JEQ, 1, 0, 0),
                (_RET, 0, 0, eperm), (_RET, 0, 0, _ALLOW),
            ],
        )  # fmt: skip
    harness = (1,) if zygote is None else (1, zygote)
    for name in NOT_THE_BROKER:
        pids = (*harness, _ALL) if name == "kill" and zygote is not None else harness
        rule(name, [(_LD, 0, 0, _low(0)), *_one_of(pids), (_RET, 0, 0, _ALLOW), (_RET, 0, 0, eperm)])
    if zygote is not None:  # a descriptor of /proc/PID works in place of one from pidfd_open
        rule("pidfd_send_signal", [(_RET, 0, 0, eperm)])
    # The owner of a descriptor gets a signal when it becomes readable. -1 is the broker's process group.
    # A write hint stays with the inode, where every run can read it.
    owners, refused = (*harness, _ALL), (_F_SETOWN_EX, _F_SET_RW_HINT, _F_SET_FILE_RW_HINT)
    rule(
        "fcntl",
        [
            (_LD, 0, 0, _low(1)), *[(_JEQ, len(owners) + 5 - i, 0, command) for i, command in enumerate(refused)],
            (_JEQ, 0, len(owners) + 1, _F_SETOWN),
            (_LD, 0, 0, _low(2)), *_one_of(owners), (_RET, 0, 0, _ALLOW), (_RET, 0, 0, eperm),
        ],
    )  # fmt: skip
    commands = (*_TYPING, *_OWNING, *_LOADING)
    rule(
        "ioctl",
        [
            (_LD, 0, 0, _low(1)), *[(_JEQ, len(commands) - i, 0, command) for i, command in enumerate(commands)],
            (_RET, 0, 0, _ALLOW), (_RET, 0, 0, eperm),
        ],
    )  # fmt: skip
    program.append((_RET, 0, 0, _ALLOW))
    return program


def load(zygote=None):
    """Loads the filter into this process, permanently. Every process that it forks inherits it."""
    machine = os.uname().machine
    if machine not in NUMBERS:
        raise OSError(errno.ENOSYS, "no system call filter for the architecture " + machine)
    program = build(machine, zygote)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prog = Program(len(program), ctypes.addressof(code))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(prog))
