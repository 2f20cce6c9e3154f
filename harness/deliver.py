"""Starts the harness in a sandbox without its files: the program that an engine passes to `python3 -c`.

The first line on descriptor 0 is the number of bytes that follow: zlib-compressed JSON, from path to source. All later bytes
belong to the channel. The sources stay in memory.
"""

import json
import os
import sys
import zlib

HARNESS = "/sandglass/"  # its path in sandboxes that mount it, by which tracebacks omit its frames


class Delivered:
    """Finds and loads the modules of the package."""

    def __init__(self, sources):
        self._sources = sources

    def find_spec(self, name, path=None, target=None):
        module = name.replace(".", "/")
        for file in (f"{module}.py", f"{module}/__init__.py"):
            if file in self._sources:
                spec = type(os.__spec__)(name, self, origin=HARNESS + file, is_package=file.endswith("/__init__.py"))
                spec.has_location = True
                return spec
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file = module.__spec__.origin
        exec(compile(self._sources[file[len(HARNESS) :]], file, "exec", dont_inherit=True), module.__dict__)


def read_exactly(count):
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            sys.exit("the channel was closed before the harness was delivered")
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
        sys.exit("the first bytes on the channel are not a harness")
    sys.meta_path.insert(0, Delivered(sources))
    from sandglass_harness import start

    start.main()


main()
