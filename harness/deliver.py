"""Starts the harness where no file of it is: the program that an engine passes to `python3 -c`.

The first line on descriptor 0 tells how many bytes follow; they are zlib-compressed JSON, module name to source. After
them the descriptor is the channel, untouched. The sources stay in memory; nothing is written anywhere.
"""

import json
import os
import sys
import zlib

PACKAGE = "sandglass_harness"


class Delivered:
    """Finds and loads the modules of the package."""

    def __init__(self, sources):
        self._sources = sources

    def find_spec(self, name, path=None, target=None):
        if name not in self._sources:
            return None
        spec = type(os.__spec__)(name, self, origin=self._file(name), is_package=name == PACKAGE)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(self._sources[name], self._file(name), "exec", dont_inherit=True), module.__dict__)

    def _file(self, name):
        # Where the harness lies in sandboxes that mount it: its frames are left out of tracebacks by this path.
        return "/sandglass/" + name.replace(".", "/") + ("/__init__.py" if name == PACKAGE else ".py")


def read_exactly(count):
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            sys.exit("the channel ended before the harness was delivered")
        data += piece
    return data


def main():
    if sys.version_info < (3, 10):
        sys.exit("sandglass needs Python 3.10 or later, this is " + sys.version.split()[0])
    length = b""
    while not length.endswith(b"\n"):
        length += read_exactly(1)
    try:
        sources = json.loads(zlib.decompress(read_exactly(int(length))))
    except (ValueError, zlib.error):
        sys.exit("what came first on the channel is no harness")
    sys.meta_path.insert(0, Delivered(sources))
    from sandglass_harness import start

    start.main()


main()
