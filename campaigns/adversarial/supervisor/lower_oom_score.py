"""Tries to become the last process that the kernel kills, then allocates all memory."""

import os

lowest = None
for value in (-1000, -500, -1, 0, 1, 500, 999):
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(value))
        lowest = value
        break
    except OSError:
        pass
emit_intermediate("lowest", lowest)
for other in (1, os.getppid()):
    try:
        with open(f"/proc/{other}/oom_score_adj", "w") as file:
            file.write("1000")
        emit_intermediate("raised another", other)
    except OSError:
        pass
taken = []
while True:
    taken.append(bytearray(os.urandom(1 << 16) * 64))
