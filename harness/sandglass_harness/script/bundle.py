"""Creates MIME bundles of values: by type for known libraries, otherwise by the `_repr_*_` methods that notebooks call.

Imports none of the libraries, because a value of one exists only if the script has loaded it.
"""

import binascii
import json
import re
import reprlib
import sys

from ..caps import MAX_DISPLAY_BYTES, MAX_DISPLAY_TYPES, MAX_LEFT_OUT, MAX_MIME_TYPE
from ..text import cut, without_secrets
from . import tables
from .convert import to_json_with_nulls

MAX_DISPLAY_TEXT = 16 << 10  # characters of text/plain
PLAIN, PNG, JPEG = "text/plain", "image/png", "image/jpeg"
PLOTLY = "application/vnd.plotly.v1+json"
_METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": PNG,
    "_repr_jpeg_": JPEG,
    "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
_PICTURE_METHODS = ("_repr_png_", "_repr_svg_", "_repr_jpeg_", "_repr_mimebundle_")
_MIME_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
_TEXT = re.compile(r"text/.*|application/(?:json|javascript|xml)|.*\+(?:json|xml)", re.ASCII)
_JSON = re.compile(r"application/(?:.*\+)?json", re.ASCII)
_CANARY = "_ipython_canary_method_should_not_exist_"  # an object with this attribute answers to any name


def bundle_of(value, options=None):
    """Returns (data, left_out): texts and base64 by MIME type, and the types that failed. Names that are no MIME types are quoted."""
    options = options or {}
    given, failed = _raw(value) if options.get("raw") else _representations(value)
    data, left_out = {}, [name for name in failed if _is_selected(name, options)]
    for name, content in list(given.items())[: 4 * MAX_DISPLAY_TYPES]:
        if content is None or not _is_selected(name, options):
            continue
        ready = _as_text(name, content) if _is_mime_type(name) else None
        if ready is None or len(data) == MAX_DISPLAY_TYPES:
            left_out.append(name if _is_mime_type(name) else _quote(name))
        else:
            data[name] = ready
    return data, left_out[:MAX_LEFT_OUT]


def picture_in(value):
    """Returns the object to show if a value is a picture or belongs to a figure, otherwise None."""
    figure = figure_of(value)
    if figure is not None:
        return figure
    kind = type(value)
    if _is_a(value, "PIL.Image", "Image") or _is_a(value, "plotly.basedatatypes", "BaseFigure"):
        return value
    if isinstance(value, type) or not any(hasattr(kind, name) for name in _PICTURE_METHODS):
        return None
    data, _ = _representations(value)
    return value if any(type(name) is str and (name.startswith("image/") or ".vegalite." in name) for name in data) else None


def _is_figure(value):
    """True for a figure of matplotlib."""
    return _is_a(value, "matplotlib.figure", "FigureBase")


def text_of(value):
    """Describes a value in a short text."""
    if _is_figure(value):
        from . import figures

        return figures.describe(value)
    if _is_a(value, "PIL.Image", "Image"):
        return f"Picture of {value.width} x {value.height} pixels ({value.mode})"
    if _is_a(value, "plotly.basedatatypes", "BaseFigure"):
        return _describe_plotly(value)
    if isinstance(value, str):
        return cut(repr(value[: 2 * MAX_DISPLAY_TEXT]), MAX_DISPLAY_TEXT)
    text = repr(value) if type(value).__repr__ is not object.__repr__ and not _is_plain(value) else _repr.repr(value)
    return cut(text if type(text) is str else str(text), MAX_DISPLAY_TEXT)


class _BoundedRepr(reprlib.Repr):
    """Limits the total length of a text, because limits per level would multiply."""

    def repr(self, x):
        """Describes a value."""
        self._left = MAX_DISPLAY_TEXT
        return super().repr(x)

    def repr1(self, x, level):
        """Describes a part of it."""
        left = self._left
        self._left -= 1 + (min(len(x), self.maxstring) if type(x) is str else 0)
        return super().repr1(x, level) if left > 0 else "..."


_repr = _BoundedRepr()
_repr.maxlevel = 20
_repr.maxdict = _repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxfrozenset = _repr.maxdeque = _repr.maxarray = 1000
_repr.maxstring = _repr.maxother = MAX_DISPLAY_TEXT
_repr.maxlong = 1000


def _is_plain(value):
    return type(value) in (list, tuple, dict, set, frozenset, str, bytes, bytearray, int)


def _representations(value):
    """Returns (contents by MIME type, types that failed)."""
    left_out = []
    if isinstance(value, type):
        return {PLAIN: repr(value)}, left_out
    made = {}
    figure = figure_of(value)
    try:
        if figure is not None:
            from . import figures

            made[PNG] = figures.render(figure)
            value = figure
        elif _is_a(value, "PIL.Image", "Image"):
            from . import pictures

            made.update(pictures.render(value))
        elif _is_a(value, "plotly.basedatatypes", "BaseFigure"):
            made[PLOTLY] = value.to_json()
        elif _is_a(value, "altair", "TopLevelMixin"):  # its own HTML would load code from the network
            version = sys.modules["altair"].SCHEMA_VERSION.partition(".")[0]
            made[f"application/vnd.vegalite.{version}+json"] = value.to_json(indent=None)
        else:
            made.update(_by_methods(value, left_out))
            table = tables.table_of(value)
            if table is not None:
                made[tables.MIME_TYPE] = table
    except Exception:
        left_out.append(PLOTLY if _is_a(value, "plotly.basedatatypes", "BaseFigure") else PNG)
    if PLAIN not in made:
        made[PLAIN] = _text_or_failure(value)
    return made, left_out


def _text_or_failure(value):
    try:
        return text_of(value)
    except Exception as error:
        return f"<{type(value).__qualname__}: its representation raised {type(error).__name__}>"


def _by_methods(value, left_out):
    """Calls the representation methods of an object. If one raises, only its type is left out."""
    made = {}
    kind = type(value)
    if kind.__module__ == "builtins" or hasattr(value, _CANARY):
        return made
    bundle = getattr(value, "_repr_mimebundle_", None)
    if callable(bundle):
        try:
            given = bundle(include=None, exclude=None)
        except Exception:
            given = None
        given = given[0] if isinstance(given, tuple) and given else given
        made.update(given if isinstance(given, dict) else {})
    for name, mime_type in _METHODS.items():
        method = None if mime_type in made else getattr(value, name, None)
        if not callable(method):
            continue
        try:
            content = method()
        except Exception:
            left_out.append(mime_type)
            continue
        content = content[0] if isinstance(content, tuple) and content else content
        if content is not None:
            made[mime_type] = content
    return made


def _raw(value):
    return (value, []) if isinstance(value, dict) else _representations(value)


def _is_selected(name, options):
    include, exclude = options.get("include"), options.get("exclude")
    return (not include or name in include) and (not exclude or name not in exclude)


def _as_text(name, content):
    """Encodes a content as text: text unchanged, JSON values as JSON, bytes in base64. Returns None if that is impossible."""
    if _JSON.fullmatch(name) and not isinstance(content, str):
        try:
            return json.dumps(to_json_with_nulls(content)[0], separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            return None
    if name == PLAIN:
        return cut(str.__str__(content), MAX_DISPLAY_TEXT) if isinstance(content, str) else None
    if _TEXT.fullmatch(name):
        return str.__str__(content) if isinstance(content, str) and len(content) <= MAX_DISPLAY_BYTES else None
    if isinstance(content, str):  # IPython allows base64 here
        try:
            content = binascii.a2b_base64(content)
        except ValueError:
            return None
    if not isinstance(content, (bytes, bytearray, memoryview)) or len(content) > MAX_DISPLAY_BYTES:
        return None
    return binascii.b2a_base64(content, newline=False).decode()


def _is_mime_type(name):
    return type(name) is str and len(name) <= MAX_MIME_TYPE and _MIME_TYPE.fullmatch(name) is not None


def _quote(name):
    """Returns the text by which a name that is no MIME type is reported."""
    text = str.__str__(name) if isinstance(name, str) else type(name).__qualname__
    return ascii(without_secrets(text)[:MAX_MIME_TYPE])[:MAX_MIME_TYPE]


def figure_of(value):
    """Returns the matplotlib figure that a value is, belongs to or holds (as grids of seaborn do), otherwise None."""
    if "matplotlib.figure" not in sys.modules:
        return None
    if _is_figure(value):
        return value
    if _is_a(value, "matplotlib.axes", "Axes") or type(value).__module__.startswith("seaborn."):
        figure = getattr(value, "figure", None)
        return figure if _is_figure(figure) else None
    return None


def _describe_plotly(figure):
    """Describes a figure of plotly by its title and the kinds of its traces."""
    title = getattr(getattr(figure.layout, "title", None), "text", None)
    counts = {}
    for trace in figure.data:
        counts[trace.type] = counts.get(trace.type, 0) + 1
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no traces"
    return cut(f"Plotly figure{f' {title!r}' if title else ''}: {kinds}", MAX_DISPLAY_TEXT)


def _is_a(value, module, name):
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)
