"""The class's summary for people: a page, and lines in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from rlassay.describe import plain
from rlassay.grading.document import document, text
from rlassay.grading.summary import Alert, Bin, PartSummary, Summary
from rlassay.terminal import print_row, print_rows

WIDTH, HEIGHT, ROOM = 400, 140, 26
"""The histogram's drawing area, and the room above and below it for numbers."""

FEW = 5
"""So many faults and alerts are named in a terminal."""


def summary_page(summary: Summary) -> bytes:
    """The page for staff."""
    return document(f"{summary.title}: the class", "\n".join(_sections(summary)))


def _sections(summary: Summary) -> Iterator[str]:
    yield f"<h1>{text(summary.title)}</h1>"
    yield f"<p>{text(_counts(summary))}</p>"
    if summary.spread is not None:
        yield "<h2>Points</h2>"
        yield _histogram(summary.histogram) if summary.histogram else ""
        yield _table([name for name, _ in _spread(summary)], [[value for _, value in _spread(summary)]], 0)
    if summary.parts:
        yield "<h2>Parts</h2>"
        rows: list[list[str | int]] = [
            [part.name, part.full, part.some, part.none, part.absent] for part in summary.parts
        ]
        yield _table(["part", "all points", "some", "none", "not provided"], rows)
    if summary.faults or summary.unexplained:
        yield "<h2>What went wrong most often</h2>"
        found: list[list[str | int]] = [[fault.part, fault.text, fault.count] for fault in summary.faults]
        yield _table(["part", "behaviour", "submissions"], found, 2)
        if summary.unexplained:
            yield f"<p>failing parts that behave like nothing known: {summary.unexplained}</p>"
    if summary.attention:
        yield "<h2>To look at</h2>"
        alerts = [[_who(alert), _what(alert), "\n".join(alert.why)] for alert in summary.attention]
        yield _table(["submission", "marks", "why"], alerts, 3)
        yield f"<p>{_more(summary)}</p>" if _more(summary) else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str | int]], numbers: int = 1) -> str:
    """A table whose columns from the given one on hold numbers."""

    def line(tag: str, cells: Sequence[str | int]) -> str:
        kinds = ["" if place < numbers else ' class="number"' for place in range(len(cells))]
        return "".join(f"<{tag}{kind}>{text(str(one))}</{tag}>" for kind, one in zip(kinds, cells, strict=True))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{line("th", head)}</tr></thead><tbody>{body}</tbody></table></div>'


def _histogram(bins: Sequence[Bin]) -> str:
    """The distribution as a drawing; the same in words is its label."""
    most = max((one.count for one in bins), default=0) or 1
    step = WIDTH / len(bins)
    shapes: list[str] = []
    for place, one in enumerate(bins):
        height = one.count / most * HEIGHT
        left, middle, top = place * step, (place + 0.5) * step, ROOM + HEIGHT - height
        shapes.append(f'<rect x="{left + 2:g}" y="{top:g}" width="{step - 4:g}" height="{height:g}"/>')
        shapes.append(f'<text x="{middle:g}" y="{top - 5:g}">{one.count or ""}</text>')
        shapes.append(f'<text x="{left:g}" y="{HEIGHT + ROOM + 16}">{one.low:g}</text>')
    shapes.append(f'<text x="{WIDTH}" y="{HEIGHT + ROOM + 16}">{bins[-1].high:g}</text>')
    shapes.append(f'<line x1="0" x2="{WIDTH}" y1="{HEIGHT + ROOM}" y2="{HEIGHT + ROOM}"/>')
    words = "; ".join(f"{one.low:g} to {one.high:g} points: {one.count}" for one in bins)
    box = f"-16 0 {WIDTH + 32} {HEIGHT + 2 * ROOM}"
    return f'<svg viewBox="{box}" role="img" aria-label="{text(words)}">{"".join(shapes)}</svg>'


def render_summary(summary: Summary, console: Console) -> None:
    """Print the summary: counts, distribution, parts, the faults found most often, what staff has to look at."""
    print_row(console, "", Text(summary.title, style="bold"))
    print_row(console, "", _counts(summary))
    console.print()
    if summary.spread is not None:
        print_row(console, "", " · ".join(f"{name} {value}" for name, value in _spread(summary)))
        _print_bars(summary.histogram, console)
        console.print()
    _print_section("points of each part", [(part.name, _part(part)) for part in summary.parts], console)
    faults = [(f"{fault.count:3} ×", f"{fault.part}: {fault.text}") for fault in summary.faults[:FEW]]
    _print_section("found most often", faults, console)
    alerts = [(_who(alert), f"{_what(alert)}: {'; '.join(alert.why)}") for alert in summary.attention[:FEW]]
    _print_section(f"to look at ({summary.alerts})", alerts, console)


def _print_bars(bins: Sequence[Bin], console: Console) -> None:
    most = max((one.count for one in bins), default=0) or 1
    width = max(console.width - 24, 10)
    rows: list[tuple[Text | str, Text | str]] = []
    for one in bins:
        bar = "#" * round(one.count / most * width)
        rows.append((f"{one.low:g} – {one.high:g}", Text.assemble((bar, "cyan"), f" {one.count}" if one.count else "")))
    print_rows(console, rows, 2)


def _print_section(title: str, rows: Sequence[tuple[str, str]], console: Console) -> None:
    if not rows:
        return
    console.print(Text(title, style="bold"))
    cleaned: list[tuple[Text | str, Text | str]] = [(_line(label), _line(body)) for label, body in rows]
    print_rows(console, cleaned, 2)
    console.print()


def _part(part: PartSummary) -> str:
    absent = f", {part.absent} not provided" if part.absent else ""
    return f"{part.full:3} all, {part.some} some, {part.none} none{absent}"


def _line(value: str) -> str:
    return plain(value).replace("\n", " ")


def _counts(summary: Summary) -> str:
    parts = [f"{summary.submissions} submission{'s' * (summary.submissions != 1)}", f"{summary.graded} graded"]
    for count, words in (
        (summary.review, "for review"),
        (summary.failed, "not graded"),
        (summary.late, "late"),
        (summary.definitions, "judged from their definitions only"),
        (summary.nothing, "with nothing to judge"),
    ):
        parts += [f"{count} {words}"] if count else []
    return ", ".join(parts)


def _spread(summary: Summary) -> list[tuple[str, str]]:
    spread = summary.spread
    assert spread is not None
    names = ("mean", "lowest", "lower_quartile", "median", "upper_quartile", "highest")
    found = [(name.replace("_", " "), f"{getattr(spread, name):g}") for name in names]
    return [*found, ("of", f"{summary.maximum:g}")]


def _who(alert: Alert) -> str:
    return f"{alert.name} ({alert.id})" if alert.name else alert.id


def _what(alert: Alert) -> str:
    return {"review": "not exported: for review", "failed": "not graded"}.get(alert.status, "exported")


def _more(summary: Summary) -> str:
    more = summary.alerts - len(summary.attention)
    return f"and {more} more: see grades.csv" if more else ""
