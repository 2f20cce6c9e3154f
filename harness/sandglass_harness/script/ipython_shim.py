"""A small `IPython.display`, for scripts written for notebooks. `get_ipython()` returns None: this is no notebook."""

import json
import os

from . import display as shown
from .door import called_by_script

_VERSION = (8, 24, 0)  # for libraries that check it; from this version on matplotlib does not look for a notebook


def fill(module):
    """Defines the names of a module of the shim."""
    module.is_shim = True
    if module.__name__ == "IPython":
        module.version_info, module.__version__ = _VERSION, ".".join(map(str, _VERSION))
        module.get_ipython = get_ipython
        module.display = shown.display
    elif module.__name__ in ("IPython.display", "IPython.core.display"):
        names = {each.__name__: each for each in (*_CLASSES, clear_output, update_display, publish_display_data)}
        vars(module).update(names, __all__=list(names))
        module.display = shown.display


def get_ipython():
    """Returns None, as outside IPython."""
    return None


def clear_output(wait=False):
    """Does nothing, because a display cannot be removed."""


@called_by_script
def update_display(value, *, display_id=None, **options):
    """Shows the value as a new display, because a display cannot be replaced."""
    shown.display(value, **options)


@called_by_script
def publish_display_data(data, metadata=None, **_options):
    """Shows a MIME bundle."""
    shown.display(dict(data), raw=True)


class DisplayObject:
    """Content as text or bytes, from a file, or only a URL, which cannot be fetched here."""

    mime_type = "text/plain"
    is_binary = False

    def __init__(self, data=None, url=None, filename=None, metadata=None, **_options):
        if data is not None and filename is None and url is None and _is_path(data):
            data, filename = None, data
        if filename is not None and data is None:
            with open(filename, "rb") as file:
                data = file.read()
            if not self.is_binary:
                data = data.decode()
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.data is None:
            return {"text/plain": repr(self)}
        return {self.mime_type: self.data, "text/plain": repr(self)}

    def __repr__(self):
        return f"<{type(self).__name__} object>"


def _is_path(data):
    return isinstance(data, os.PathLike) or (isinstance(data, str) and len(data) < 1024 and "\n" not in data and os.path.isfile(data))


class TextDisplayObject(DisplayObject):
    """Content that is text."""


class Pretty(TextDisplayObject):
    """Plain text."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self.data)}


class HTML(TextDisplayObject):
    """HTML."""

    mime_type = "text/html"

    def _repr_html_(self):
        return self.data

    def __html__(self):
        return self.data


class Markdown(TextDisplayObject):
    """Markdown."""

    mime_type = "text/markdown"


class Latex(TextDisplayObject):
    """LaTeX."""

    mime_type = "text/latex"


class Math(Latex):
    """A LaTeX formula."""

    def __init__(self, data=None, *args, **options):
        super().__init__(data, *args, **options)
        if self.data is not None:
            self.data = f"$\\displaystyle {self.data.strip('$')}$"


class SVG(DisplayObject):
    """A drawing."""

    mime_type = "image/svg+xml"


class JSON(DisplayObject):
    """A value as JSON."""

    mime_type = "application/json"

    def __init__(self, data=None, *args, **options):
        super().__init__(data, *args, **options)
        if isinstance(self.data, str):
            self.data = json.loads(self.data)


class Javascript(TextDisplayObject):
    """Code for a browser, which nothing here runs."""

    mime_type = "application/javascript"


class Code(TextDisplayObject):
    """Source code."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self.data)}


class IFrame:
    """A page at a URL, which nothing here loads."""

    def __init__(self, src, width=None, height=None, **_options):
        self.src, self.width, self.height = src, width, height

    def __repr__(self):
        return f"<IFrame of {self.src}>"


class FileLink(IFrame):
    """A file that the script wrote."""

    def __init__(self, path, **_options):
        super().__init__(path)

    def __repr__(self):
        return str(self.src)


_SIGNATURES = {b"\x89PNG\r\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


class Image(DisplayObject):
    """A picture: the bytes of a file, or its path."""

    is_binary = True

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = self.data
        if not isinstance(data, (bytes, bytearray)):
            return {"text/plain": repr(self)}
        mime_type = next((name for head, name in _SIGNATURES.items() if data.startswith(head)), None)
        if mime_type is None:
            return {"text/plain": repr(self)}
        return {mime_type: bytes(data), "text/plain": repr(self)}


_CLASSES = (DisplayObject, TextDisplayObject, Pretty, HTML, Markdown, Latex, Math, SVG, JSON, Javascript, Code, IFrame)
_CLASSES += (FileLink, Image)
