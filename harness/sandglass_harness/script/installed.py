"""Finds the packages that are installed for this interpreter, which starts without `site`."""

import os
import site
import sys


def find_directories():
    """Returns the directories that `site` would add, in a virtual environment too. Ignores `.pth` files."""
    found = []
    adding = site.addsitedir
    site.addsitedir = lambda directory, *_: found.append(directory)
    try:
        site.addsitepackages(site.venv(set()))
    finally:
        site.addsitedir = adding
    return [path for path in dict.fromkeys(found) if path not in sys.path and os.path.isdir(path)]
