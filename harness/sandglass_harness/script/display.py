"""Shows values: `display(...)`, figures that are open at the end, and pictures in a result. A value becomes a MIME bundle.

This module is loaded before every script, so it stays small. `bundle`, which creates the bundles, is loaded for the first value.
"""

import os
import sys

from ..caps import MAX_DISPLAY_BYTES, MAX_DISPLAYS, MAX_DISPLAYS_BYTES, MAX_LEFT_OUT
from . import emit
from .door import called_by_script


class _Shown:
    """The displays of one run or cell so far."""

    def __init__(self):
        self.count = self.bytes = 0
        self.is_over = False
        self.places = {}  # id of a figure: (the figure, its place among the displays)
        self.pid = os.getpid()


_shown = _Shown()


def begin():
    """Resets the counts for a new run or cell."""
    global _shown
    _shown = _Shown()


@called_by_script
def display(*objects, **options):
    """Shows values to whoever reads the run: figures, tables, pictures, or any object with a rich representation.

    With `raw=True`, the objects are MIME bundles. `include` and `exclude` list MIME types.
    """
    for value in objects:
        _show(value, "display", options)


def show_result(value):
    """Shows the value of a cell's last expression."""
    _show(value, "result", {})


def flush_figures():
    """Shows the figures that are still open, each once, and closes them. The display of a figure that cannot be drawn has the
    reason."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    from . import figures

    for figure in figures.take_open():
        emit.current.release()  # because drawing takes long
        show_once(figure)


def show_once(figure):
    """Shows a figure, unless it was shown before."""
    if id(figure) not in _shown.places:
        _show(figure, "display", {})


def show_picture(value):
    """Shows a picture inside an emitted result. Returns the JSON that replaces it in the result, or None for any other value."""
    from . import bundle

    picture = bundle.picture_in(value)
    if picture is None:
        return None
    known = _shown.places.get(id(picture))
    place = _show(picture, "display", {}) if known is None else known[1]
    return {"display": place, "text": bundle.text_of(picture)}


def rehearse(value, emitter):
    """Creates a display and hands it to a silent emitter, so that the memory is warm for the first display of a script."""
    from . import bundle

    data, left_out = bundle.bundle_of(value, {})
    emitter.hold_line(emitter.line_of({"type": "display", "kind": "result", "data": data, "left_out": left_out[:MAX_LEFT_OUT]}))
    bundle.figure_of(value)


def _show(value, kind, options):
    """Sends the bundle of a value. Returns its place among the displays of the run, or None if it was left out."""
    if _shown.is_over:
        return None
    if _shown.count >= MAX_DISPLAYS:
        _shown.is_over = True
        emit.current.send({"type": "displays_over"})
        return None
    from . import bundle

    data, left_out = bundle.bundle_of(value, options)
    if not data and not left_out:
        return None
    place = _send(kind, data, left_out)
    figure = bundle.figure_of(value)
    if figure is not None:
        _shown.places[id(figure)] = (figure, place)  # keeps the figure alive, so that no other object gets its id
    return place


def _send(kind, data, left_out):
    """Sends a display without the parts that are too large, the largest first. If nothing is left, its text says so."""
    emitter = emit.current
    room = min(MAX_DISPLAY_BYTES, MAX_DISPLAYS_BYTES - _shown.bytes)
    while True:
        left_out = left_out[:MAX_LEFT_OUT]
        shown = data or {"text/plain": f"<display without content; left out: {', '.join(left_out)}>"}
        line = emitter.line_of({"type": "display", "kind": kind, "data": shown, "left_out": left_out})
        if len(line) <= room or not data:
            break
        largest = max(data, key=lambda name: (len(data[name]), name))
        data = {name: content for name, content in data.items() if name != largest}
        left_out = [*left_out, largest]
    if len(line) > room:
        _shown.is_over = True
        emitter.send({"type": "displays_over"})
        return None
    _flush_output()  # so that the broker counts the output before the display
    if kind == "result":  # the cell has written all its output
        emitter.hold_line(line)
    else:
        emitter.send_line(line)
        emitter.wait_until_read()  # so that the broker does not count later stdout as written before the display
    place, _shown.count, _shown.bytes = _shown.count, _shown.count + 1, _shown.bytes + len(line) + _BROKER_BYTES
    return place if os.getpid() == _shown.pid else None  # a forked child does not know the number of displays of other processes


_BROKER_BYTES = 400  # for the run's id and the position in the output, which the broker adds


def _flush_output():
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        pass
