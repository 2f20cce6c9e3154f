"""Writes endlessly to stdout, stderr or the frame socket, from several processes."""

import os

for _ in range(3):
    os.fork()
block = b"x" * 65536
while True:
    os.write(descriptor, block)
