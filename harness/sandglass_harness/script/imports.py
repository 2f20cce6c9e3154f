"""Records the modules that a script loads, so that the host can preload them in later sandboxes."""

import sys

from ..caps import MAX_IMPORTS
from .door import called_by_script


class ImportNotes:
    """A finder that finds nothing. It records the top-level imports: modules that begin to load while no other recorded module is
    loading. It ignores the standard library."""

    def __init__(self):
        self._names = []
        self._loading = None

    def begin(self):
        """Starts to record modules."""
        sys.meta_path.insert(0, self)

    @property
    def loaded(self):
        """The recorded modules that were loaded, in order."""
        try:
            return [name for name in self._names if type(name) is str and name in sys.modules]
        except BaseException:  # the script has replaced sys.modules
            return []

    @called_by_script
    def find_spec(self, name, _path=None, _target=None):
        """Records the module, and finds nothing."""
        if name.partition(".")[0] in sys.stdlib_module_names or len(self._names) == MAX_IMPORTS or _is_loading(self._loading):
            return
        self._loading = name
        self._names.append(name)


def _is_loading(name):
    """True while the code of a module runs for the first time."""
    try:
        return bool(sys.modules[name].__spec__._initializing)
    except Exception:  # it is missing, or has no ordinary spec
        return False
