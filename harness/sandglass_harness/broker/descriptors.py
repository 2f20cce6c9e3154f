"""The limit of the broker's own descriptors: each activity of a workspace holds some of them, in the same process."""

import os
import resource

MARGIN = 64  # descriptors reserved for running activities
NONE_LEFT = "the activities of the workspace use all of its file descriptors; close some of them and try again"


def raise_limit():
    """Raises the soft limit of this process to the hard limit. The processes of activities, which the zygote forks, keep theirs."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass  # the workspace then serves fewer activities


def are_left():
    """True if another activity may begin. A new descriptor gets the lowest free number, so all lower ones are in use."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.dup(0)
    except OSError:
        return False
    os.close(lowest)
    return soft == resource.RLIM_INFINITY or lowest < soft - min(MARGIN, soft // 4)
