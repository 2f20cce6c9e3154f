"""Makes the `show()` of libraries create displays: one finder patches a few modules after their import, another one provides
`IPython.display` if IPython is not installed.

A script that uses none of these modules imports nothing for this. The first finder adds one dict lookup to any other import; the
second is asked only for imports that would fail.
"""

import sys

_HOOKED = {
    "matplotlib.backend_bases": "hook_matplotlib",
    "plotly.io._renderers": "hook_plotly",
    "PIL.ImageShow": "hook_pillow",
}
_SHIM = ("IPython", "IPython.display", "IPython.core", "IPython.core.display")


def install():
    """Installs both finders, once in a process."""
    sys.meta_path.insert(0, _HookFinder())
    sys.meta_path.append(_ShimFinder())


class _HookFinder:
    """Finds a module by the other finders, and patches it after it is loaded."""

    def find_spec(self, name, path=None, target=None):
        """Finds only the modules of _HOOKED."""
        function = _HOOKED.get(name)
        if function is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                break
        else:
            return None
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _HookLoader(spec.loader, function)
        return spec


class _HookLoader:
    """A loader that patches the module after the other loader is done, and delegates everything else to it."""

    def __init__(self, loader, function):
        self._loader, self._function = loader, function

    def exec_module(self, module):
        """Executes the module, then patches it."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        from . import show_functions

        try:
            getattr(show_functions, self._function)(module)
        except Exception:  # a version without the patched function stays unchanged
            pass

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _ShimFinder:
    """Finds a small IPython.display if IPython is not installed. It is the last finder, so an installed IPython takes
    precedence."""

    def find_spec(self, name, _path=None, _target=None):
        """Finds only the modules of _SHIM."""
        if name not in _SHIM:
            return None
        if name != "IPython" and not getattr(sys.modules.get("IPython"), "is_shim", False):
            return None  # IPython is installed, and lacks this module
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=name in ("IPython", "IPython.core"))

    def create_module(self, _spec):
        """Returns None, for an ordinary module."""
        return None

    def exec_module(self, module):
        """Fills the module."""
        from . import ipython_shim

        ipython_shim.fill(module)
