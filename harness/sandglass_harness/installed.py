"""Where the modules lie that are installed beside this interpreter, which starts without `site`."""

import os
import site
import sys


def directories():
    """What `site` would add, also in a virtual environment, without what `.pth` files there name or run."""
    found = []
    adding = site.addsitedir
    site.addsitedir = lambda directory, *_: found.append(directory)
    try:
        site.addsitepackages(site.venv(set()))
    finally:
        site.addsitedir = adding
    return [path for path in dict.fromkeys(found) if path not in sys.path and os.path.isdir(path)]
