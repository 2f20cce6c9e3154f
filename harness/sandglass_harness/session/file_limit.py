"""Lets the harness open files where a cell has left no descriptor: it raises the limit until the next cell."""

import errno
import resource

_of_cells = None  # the limits of the cells, while they are raised


def call_with_descriptors(function):
    """Returns the result of `function`. Where it finds no descriptor, raises the limit of open files, and calls it again."""
    try:
        return function()
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    _raise()
    return function()


def restore():
    """Gives the cells their own limit again."""
    global _of_cells
    before, _of_cells = _of_cells, None
    if before is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _raise():
    global _of_cells
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _of_cells is None:
        _of_cells = soft, hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
