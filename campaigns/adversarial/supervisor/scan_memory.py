"""Searches all readable memory of this process for values that are given as halves, one half reversed."""

import os

# The script never contains a whole value: the scanner would find its own input.
wanted = {name: (front.encode(), back[::-1].encode()) for name, (front, back) in needles.items()}
regions = []
for line in open("/proc/self/maps"):
    span, mode = line.split()[:2]
    if "r" in mode and "[vvar" not in line and "[vsyscall" not in line:
        regions.append(tuple(int(end, 16) for end in span.split("-")))
memory = os.open("/proc/self/mem", os.O_RDONLY)
found = {name: 0 for name in wanted}
scanned = 0
for start, end in regions:
    try:
        content = os.pread(memory, end - start, start)
    except OSError:
        continue
    scanned += len(content)
    for name, (front, back) in wanted.items():
        at = content.find(front)
        while at != -1:
            if content[at + len(front) : at + len(front) + len(back)] == back:
                found[name] += 1
            at = content.find(front, at + 1)
    del content
emit_result({"found": {name: count > 0 for name, count in found.items()}, "mebibytes": scanned >> 20})
