"""Fills every writable file system in one way: bytes, empty files, or 3,000 nested directories."""

import errno
import os
import time

ROOTS = ("/workspace", "/tmp", "/var/tmp", "/dev/shm", "/dev")


def fill_with_bytes(root):
    with open(root + "/fill", "wb", buffering=0) as file:
        block = bytes(1 << 20)
        while True:
            file.write(block)


def fill_with_files(root):
    # A tmpfs has no limit for names: a time or count limit stops before the names take all the memory of the sandbox.
    until = time.monotonic() + 1.0
    number = 0
    while time.monotonic() < until and number < 40_000:
        os.close(os.open(f"{root}/{number}", os.O_CREAT | os.O_WRONLY))
        number += 1
    raise TimeoutError(errno.ETIME, "time")


def fill_with_directories(root):
    os.chdir(root)
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    open("file", "w").close()
    raise TimeoutError(errno.ETIME, "done")


ways = {"bytes": fill_with_bytes, "files": fill_with_files, "directories": fill_with_directories}
found = {}
for root in ROOTS:
    try:
        ways[way](root)
    except OSError as error:
        found[root] = errno.errorcode[error.errno]
emit_result(found)
