"""Lets the harness open files where a cell has left few descriptors or none: it raises the limit until the next cell."""

import resource

_of_cells = None  # the limits of the cells, while they are raised


def raise_until_cell():
    """Raises the limit of open files as far as the kernel allows."""
    global _of_cells
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    if _of_cells is None:
        _of_cells = soft, hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def restore():
    """Gives the cells their own limit again."""
    global _of_cells
    before, _of_cells = _of_cells, None
    if before is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
