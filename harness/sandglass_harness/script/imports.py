"""Notes which modules a script loads, so that the host can have later sandboxes load them ahead."""

import sys

from ..caps import MAX_IMPORTS
from .door import called_by_script


class ImportNotes:
    """A finder that finds nothing. It notes the modules whose loading begins while no other noted one is being loaded: what
    those import comes with them. The standard library does not count."""

    def __init__(self):
        self._names = []
        self._loading = None

    def begin(self):
        """Notes modules from now on."""
        sys.meta_path.insert(0, self)

    @property
    def loaded(self):
        """The noted modules that are there, in order."""
        try:
            return [name for name in self._names if type(name) is str and name in sys.modules]
        except BaseException:  # the script has replaced sys.modules
            return []

    @called_by_script
    def find_spec(self, name, _path=None, _target=None):
        """Finds nothing, as a finder."""
        if name.partition(".")[0] in sys.stdlib_module_names or len(self._names) == MAX_IMPORTS or _is_loading(self._loading):
            return
        self._loading = name
        self._names.append(name)


def _is_loading(name):
    """True while the code of a module runs for the first time."""
    try:
        return bool(sys.modules[name].__spec__._initializing)
    except Exception:  # it is not there, or no usual module
        return False
