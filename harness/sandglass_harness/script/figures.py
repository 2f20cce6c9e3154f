"""Figures of matplotlib: lists the open ones, renders them, and describes them as text.

The size of a picture is limited before it is rendered: 60 x 40 inches at the usual resolution take seconds and 100 MB.
"""

import io
import sys

from .pictures import MAX_PICTURE_BYTES, MAX_PICTURE_PIXELS

MAX_AXES, MAX_LABELS, MAX_LABEL = 8, 8, 80
MAX_SIDE = 4000  # pixels
PADDING = 0.1  # inches around the drawn parts
_PLAIN = frozenset(  # artists that get_tightbbox() lays out as a draw does
    (
        *(f"axis.{name}" for name in ("XAxis", "YAxis")),
        *(f"collections.{name}" for name in ("FillBetweenPolyCollection", "LineCollection", "PathCollection", "PolyCollection")),
        "image.AxesImage",
        "legend.Legend",
        "lines.Line2D",
        *(f"patches.{name}" for name in ("Polygon", "Rectangle", "Wedge")),
        "spines.Spine",
        *(f"text.{name}" for name in ("Annotation", "Text")),
    )
)
GROWTH = 3.0  # maximum factor of the area for parts drawn outside the figure; beyond it they are cut off


def take_open():
    """Returns the open figures in order, and closes them."""
    managers = sys.modules["matplotlib._pylab_helpers"].Gcf
    found = [manager.canvas.figure for manager in managers.get_all_fig_managers()]
    managers.destroy_all()
    return found


def render(figure):
    """Returns the figure as PNG."""
    width, height = (float(n) for n in figure.get_size_inches())
    dpi = min(float(figure.dpi), (MAX_PICTURE_PIXELS / max(width * height, 1e-6)) ** 0.5, MAX_SIDE / max(width, height, 1e-3))
    dpi = max(dpi, 1.0)
    box = _bounds(figure, dpi, width, height)
    for _ in range(4):
        content = _save(figure, dpi, box)
        if len(content) <= MAX_PICTURE_BYTES:
            break
        dpi = max(1.0, dpi * 0.85 * (MAX_PICTURE_BYTES / len(content)) ** 0.5)
    return content


def _save(figure, dpi, box):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, bbox_inches=box)
    return buffer.getvalue()


def _bounds(figure, dpi, width, height):
    """Returns the bounding box of all drawn parts in inches. Returns None, for the figure's own box, if parts far outside the
    figure would make the picture too large."""
    before = figure.dpi
    try:
        figure.dpi = dpi
        if _needs_no_draw(figure):
            _place_axes(figure)
        else:
            figure.draw_without_rendering()
        box = figure.get_tightbbox().padded(PADDING)
    except (AttributeError, TypeError):  # matplotlib before 3.6
        return None
    finally:
        figure.dpi = before
    is_sound = 0 < box.width * box.height <= GROWTH * width * height and max(box.width, box.height) * dpi <= 2 * MAX_SIDE
    return box if is_sound else None


def _needs_no_draw(figure):
    """True if get_tightbbox() lays out everything as a draw does, so that the extra draw, a fifth of the time, can be skipped.
    Other kinds of axes and artists, and overridden methods, may need the draw."""
    handlers = figure.canvas.callbacks.callbacks.get("draw_event")
    if type(figure).draw is not sys.modules["matplotlib.figure"].Figure.draw or handlers or figure.subfigs:
        return False
    axes = figure.axes
    has_shared_shapes = len(axes) > 1 and any(each.get_aspect() != "auto" for each in axes)
    if figure.get_layout_engine() is not None or has_shared_shapes:
        return False
    if any(_kind(each) != "axes._axes.Axes" or each.get_axes_locator() is not None for each in axes):
        return False
    parts = [each for owner in (figure, *axes) for each in owner.get_children()]
    return all(_is_plain(each) for each in parts if each not in axes)


def _place_axes(figure):
    """Scales and places all axes, as a draw does first. get_tightbbox() does so one by one, which is too late for a part placed
    relative to later axes, and does not scale axes whose x axis and y axis are hidden."""
    for each in figure.axes:
        each.get_xlim()
        each.apply_aspect()


def _is_plain(artist):
    """True for an artist that needs no draw for its layout."""
    return _kind(artist) in _PLAIN and "draw" not in vars(artist) and getattr(artist, "_mode", None) is None


def _kind(artist):
    kind = type(artist)
    return f"{kind.__module__.removeprefix('matplotlib.')}.{kind.__qualname__}"


def describe(figure):
    """Describes a figure by its content: titles, axes, and the kinds of marks in them."""
    width, height = (round(float(n) * float(figure.dpi)) for n in figure.get_size_inches())
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    axes = figure.get_axes()
    head = f"Figure of {width} x {height} pixels{_quote(title)}"
    parts = [_describe_axes(each) for each in axes[:MAX_AXES]]
    if len(axes) > MAX_AXES:
        parts.append(f"{len(axes) - MAX_AXES} more axes")
    if len(parts) == 1:
        return f"{head}: {parts[0]}"
    return "\n".join([f"{head}, {len(axes)} axes", *(f"{number}. {part}" for number, part in enumerate(parts, 1))])


def _describe_axes(axes):
    names = [name for name in ("x", "y", "z") if hasattr(axes, f"get_{name}label")]
    labels = {name: getattr(axes, f"get_{name}label")() for name in names}
    told = [f"{name} axis{_quote(label)}" for name, label in labels.items() if label]
    marks = _marks(axes)
    words = ", ".join([*(marks or ["nothing drawn"]), *told])
    return f"axes{_quote(axes.get_title())} with {words}"


def _marks(axes):
    """Lists the kinds of marks, without interpreting them."""
    kinds = []
    bars = [each for each in axes.containers if type(each).__name__ == "BarContainer"]
    in_bars = {id(patch) for each in bars for patch in each.patches}
    lines = [line for line in axes.lines if len(line.get_xdata(orig=False)) > 0]
    if lines:
        points = sum(len(line.get_xdata(orig=False)) for line in lines)
        kinds.append(f"{_count(len(lines), 'line')} of {_count(points, 'point')}{_labels_of(lines)}")
    if bars:
        kinds.append(f"{_count(len(in_bars), 'bar')}{_labels_of(bars)}")
    points = [each for each in axes.collections if type(each).__name__ == "PathCollection"]
    if points:
        kinds.append(f"{_count(sum(len(each.get_offsets()) for each in points), 'scattered point')}{_labels_of(points)}")
    for image in axes.images[:MAX_LABELS]:
        kinds.append(f"an image of {' x '.join(str(n) for n in image.get_size())} cells")
    other = {}
    for each in [*axes.collections, *(patch for patch in axes.patches if id(patch) not in in_bars)]:
        name = type(each).__name__
        if name != "PathCollection":
            other[name] = other.get(name, 0) + 1
    kinds += [_count(count, name.lower()) for name, count in list(other.items())[:MAX_LABELS]]
    return kinds


def _labels_of(artists):
    labels = [str(each.get_label()) for each in artists]
    labels = [label[:MAX_LABEL] for label in labels if label and not label.startswith("_")]
    return f" ({', '.join(repr(label) for label in labels[:MAX_LABELS])})" if labels else ""


def _count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _quote(text):
    text = str(text or "")
    return f" {text[:MAX_LABEL]!r}" if text else ""
