"""Runs a command on a kernel as gVisor's for keepers: without pidfds, and without processes that adopt orphans."""

import ctypes
import errno
import os
import struct
import sys

PIDFD_OPEN, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 434, 38, 22, 2
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
PRCTL = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
LD, JEQ, RET, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
FILTER = [
    (LD, 0, 0, 0),
    (JEQ, 0, 1, PIDFD_OPEN), (RET, 0, 0, ERRNO | errno.ENOSYS),
    (JEQ, 0, 4, PRCTL), (LD, 0, 0, 16),
    (JEQ, 1, 0, PR_SET_CHILD_SUBREAPER), (JEQ, 0, 1, PR_GET_CHILD_SUBREAPER), (RET, 0, 0, ERRNO | errno.EINVAL),
    (RET, 0, 0, ALLOW),
]  # fmt: skip


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


libc = ctypes.CDLL(None, use_errno=True)
code = b"".join(struct.pack("=HBBI", *instruction) for instruction in FILTER)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(Program(len(FILTER), code)), 0, 0):
    sys.exit("the filter was refused")
os.execvp(sys.argv[1], sys.argv[1:])
