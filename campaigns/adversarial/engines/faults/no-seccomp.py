"""Executes a command that cannot load a system call filter, as on a kernel without seccomp."""

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
NUMBERS = {"x86_64": (157, 317), "aarch64": (167, 277)}
prctl_number, seccomp_number = NUMBERS[os.uname().machine]
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
program = [
    (LOAD, 0, 0, 0),
    (JUMP_EQUAL, 0, 1, seccomp_number),
    (RETURN, 0, 0, ERRNO | errno.ENOSYS),
    (JUMP_EQUAL, 0, 3, prctl_number),
    (LOAD, 0, 0, 16),
    (JUMP_EQUAL, 0, 1, PR_SET_SECCOMP),
    (RETURN, 0, 0, ERRNO | errno.EINVAL),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
given = Program(len(program), ctypes.addressof(code))
if libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(given), 0, 0) != 0:
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
