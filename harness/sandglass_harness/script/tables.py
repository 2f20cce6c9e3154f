"""Converts tables of pandas and polars to JSON: their columns, and the first rows."""

import sys

from .convert import ConversionError, index_levels, to_json_with_nulls

MIME_TYPE = "application/vnd.sandglass.table+json"
MAX_ROWS, MAX_COLUMNS = 100, 50
MAX_CELL = 500  # characters


def table_of(value):
    """Returns a table as plain JSON, or None for any other value."""
    module = type(value).__module__.partition(".")[0]
    if module == "pandas" and "pandas" in sys.modules:
        return _from_pandas(sys.modules["pandas"], value)
    if module == "polars" and "polars" in sys.modules:
        return _from_polars(sys.modules["polars"], value)
    return None


def _from_pandas(pandas, value):
    if isinstance(value, pandas.Series):
        value = value.to_frame("value" if value.name is None else value.name)
    if not isinstance(value, pandas.DataFrame):
        return None
    head = value.iloc[:MAX_ROWS, :MAX_COLUMNS]
    levels = index_levels(pandas, head.index)
    columns = [{"name": name, "type": kind, "index": True} for name, kind, _ in levels]
    contents = [labels for _, _, labels in levels]
    for place, name in enumerate(head.columns):
        column = head.iloc[:, place]
        columns.append({"name": str(name), "type": str(column.dtype)})
        contents.append(column.astype(object).where(column.notna(), None).tolist())
    return _table(columns, contents, len(value), len(value.columns))


def _from_polars(polars, value):
    if isinstance(value, polars.Series):
        value = value.to_frame()
    if not isinstance(value, polars.DataFrame):
        return None
    head = value[:MAX_ROWS, :MAX_COLUMNS]
    columns = [{"name": name, "type": str(kind)} for name, kind in head.schema.items()]
    return _table(columns, [column.to_list() for column in head.get_columns()], value.height, value.width)


def _table(columns, contents, rows, width):
    cells = [[_cell(item) for item in content] for content in contents]
    return {"columns": columns, "rows": [list(row) for row in zip(*cells)], "row_count": rows, "column_count": width}


def _cell(item):
    """Returns an item as JSON, or as text if JSON cannot represent it or it is a container."""
    if item is None or isinstance(item, (bool, int, float, str)):
        if isinstance(item, str):
            return item[:MAX_CELL]
    try:
        plain, _ = to_json_with_nulls(item)
    except ConversionError:
        return str(item)[:MAX_CELL]
    return str(plain)[:MAX_CELL] if isinstance(plain, (list, dict, str)) else plain
