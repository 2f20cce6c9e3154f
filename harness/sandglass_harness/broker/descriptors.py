"""The limit of the broker's own descriptors: each activity of a workspace holds some of them, in the same process."""

import os
import resource

MARGIN = 64  # for activities that have begun


def raise_limit():
    """Raises the limit of this process as far as it may. The processes of activities, which the zygote forks, keep theirs."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass  # then it serves fewer activities


def are_left():
    """True if another activity may begin. A new descriptor is the lowest that is free, so that all below are in use."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.dup(0)
    except OSError:
        return False
    os.close(lowest)
    return soft == resource.RLIM_INFINITY or lowest < soft - min(MARGIN, soft // 4)
