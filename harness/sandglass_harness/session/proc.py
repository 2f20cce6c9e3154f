"""Reads directories and files of /proc with the functions of Python as they were before any cell, because a test in a cell may replace
them."""

import os

list_names = os.listdir
_open = open


def read(path):
    """Returns the content of a file, in bytes."""
    with _open(path, "rb") as file:
        return file.read()


def read_maps():
    """Returns the lines about the mapped memory of this process."""
    return read("/proc/self/maps").splitlines()
