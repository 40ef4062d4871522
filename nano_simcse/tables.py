"""Tables of text, for people to read."""


def aligned(lines):
    """Lines of cells as text in columns: the first flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    )


def as_table(rows, columns):
    """Aligned text: rows is a list of (label, {column: value, or text as it should stand, or None})."""
    body = [[label, *(_number(values.get(column)) for column in columns)] for label, values in rows]
    return aligned([["", *columns], *body])


def _number(value):
    if isinstance(value, str):
        return value
    return "" if value is None else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"
