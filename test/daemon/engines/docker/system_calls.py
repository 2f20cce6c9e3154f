"""Reports the result of a few system calls: errno name or "reached". The caller inserts `tell` before this text."""

import ctypes
import errno
import os
import platform

libc = ctypes.CDLL(None, use_errno=True)
NOBODY = 2**22 + 7  # no process
NUMBERS = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "shmget": 29, "msgget": 68, "mq_open": 240, "keyctl": 250,
        "unshare": 272, "socket": 41, "setpriority": 141, "mbind": 237, "set_mempolicy": 238, "personality": 135,
        "name_to_handle_at": 303, "clone3": 435,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "shmget": 194, "msgget": 186, "mq_open": 180, "keyctl": 219,
        "unshare": 97, "socket": 198, "setpriority": 140, "mbind": 235, "set_mempolicy": 237, "personality": 92,
        "name_to_handle_at": 264, "clone3": 435,
    },
}[platform.machine()]  # fmt: skip
BAD = 1  # an invalid address

# Without a filter, none of these fails with EPERM, ENOSYS or EAFNOSUPPORT.
CALLS = {
    "ptrace": (16, NOBODY, 0, 0),
    "process_vm_readv": (NOBODY, 0, 0, 0, 0, 0),
    "shmget": (4242, 4096, 0),
    "msgget": (4242, 0),
    "mq_open": (BAD, 0, 0, 0),
    "keyctl": (999, 0, 0, 0, 0),
    "unshare": (1,),
    "mbind": (0, 1 << 40, 77, 0, 0, 0),
    "set_mempolicy": (77, 0, 0),
    "personality": (0x0400000,),
    "setpriority": (2, os.getuid(), 0),
    "name_to_handle_at": (-1, BAD, 0, 0, 1 << 20),
    "clone3": (BAD, 1),
    "socket AF_NETLINK": (16, 3, 0),
    "socket AF_VSOCK": (40, 99, 0),
    "socket AF_INET": (2, 3_000, 0),
}


def answer(name, arguments):
    ctypes.set_errno(0)
    result = libc.syscall(NUMBERS[name.split()[0]], *[ctypes.c_long(a) for a in arguments])
    number = ctypes.get_errno() if result < 0 else 0
    refusals = (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT, errno.EACCES)
    return errno.errorcode[number] if number in refusals else "reached"


def filters():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Seccomp_filters"))


answers = {name: answer(name, arguments) for name, arguments in CALLS.items()}
tell({"filters": filters(), "answers": answers})
