"""The class in figures: how the points are distributed, what went wrong most often, and what staff has to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from rlassay.grading.feedback import shown
from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.points import rounded

BINS = 10
"""The histogram has so many bins, from no points to all."""

MOST_FAULTS = 20
"""So many faults are listed."""

MOST_HELD = 200
"""So many alerts are listed; the count is of all."""


class Spread(msgspec.Struct, kw_only=True):
    """The distribution of the points of those that are graded, to two decimals; a quartile between two of them is
    interpolated."""

    mean: float
    lowest: float
    lower_quartile: float
    median: float
    upper_quartile: float
    highest: float


class Bin(msgspec.Struct, kw_only=True):
    """How many have at least `low` and less than `high` points; the last bin has those with `high` too."""

    low: float
    high: float
    count: int


class PartSummary(msgspec.Struct, kw_only=True):
    """How many earned all points of a part, some of them, none, and how many do not provide what it asks for."""

    name: str
    full: int = 0
    some: int = 0
    none: int = 0
    absent: int = 0


class FaultCount(msgspec.Struct, kw_only=True):
    """How many submissions behave in one way in a part; `fault` is its id, if it is a known one."""

    part: str
    text: str
    fault: str
    count: int


class Alert(msgspec.Struct, kw_only=True):
    """A submission that staff has to know about, and why; `held` if its marks are not to be used yet."""

    id: str
    name: str
    status: str
    held: bool
    why: list[str]


class Summary(msgspec.Struct, kw_only=True):
    """The class in figures.

    `late` (those whom it costs something), `definitions` and `nothing` count submissions of any status, the parts and
    faults those that have marks. `unexplained` are failing parts that nothing known explains."""

    title: str
    maximum: float
    submissions: int
    graded: int
    review: int
    failed: int
    late: int
    definitions: int
    nothing: int
    spread: Spread | None
    histogram: list[Bin]
    parts: list[PartSummary]
    faults: list[FaultCount]
    unexplained: int
    alerts: int
    attention: list[Alert]


class _Tally:
    """What is counted while the grades pass by."""

    def __init__(self) -> None:
        self.status: Counter[str] = Counter()
        self.how: Counter[str] = Counter()
        self.late = self.alerts = self.unexplained = 0
        self.maximum = Fraction(0)
        self.points: list[Fraction] = []
        self.parts: list[PartSummary] = []
        self.faults: Counter[tuple[str, str, str]] = Counter()
        self.attention: list[Alert] = []

    def take(self, grade: Grade) -> None:
        self.status[grade.status] += 1
        self.how[grade.how] += 1
        self.late += Fraction(grade.penalty) > 0
        self.maximum = max(self.maximum, Fraction(grade.maximum))
        held = grade.status != "graded"
        if held or grade.alerts:
            self.alerts += 1
            if len(self.attention) < MOST_HELD:
                who, name, *why = map(shown, (grade.id, grade.name, *grade.alerts))
                self.attention.append(Alert(id=who, name=name, status=grade.status, held=held, why=why))
        if grade.status == "graded":
            self.points.append(Fraction(grade.points))
        if grade.status != "failed":
            for place, part in enumerate(grade.parts):
                self._take_part(place, part)

    def _take_part(self, place: int, part: PartGrade) -> None:
        if place == len(self.parts):
            self.parts.append(PartSummary(name=shown(part.name)))
        summary = self.parts[place]
        earned, points = Fraction(part.earned), Fraction(part.points)
        if not part.provided:
            summary.absent += 1
        elif earned >= points:
            summary.full += 1
        elif earned:
            summary.some += 1
        else:
            summary.none += 1
        if not part.explanation:
            self.unexplained += part.provided and part.failed > 0
        else:
            self.faults[shown(part.name), shown(part.explanation), part.fault] += 1


def summarise(title: str, grades: Iterable[Grade]) -> Summary:
    """The summary of a class, from its grades one by one."""
    tally = _Tally()
    for grade in grades:
        tally.take(grade)
    points = sorted(tally.points)
    faults = sorted(tally.faults.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_FAULTS]
    return Summary(
        title=shown(title),
        maximum=_number(tally.maximum),
        submissions=tally.status.total(),
        graded=tally.status["graded"],
        review=tally.status["review"],
        failed=tally.status["failed"],
        late=tally.late,
        definitions=tally.how["definitions"],
        nothing=tally.how["nothing"],
        spread=_spread(points) if points else None,
        histogram=_histogram(points, tally.maximum),
        parts=tally.parts,
        faults=[FaultCount(part=part, text=text, fault=fault, count=count) for (part, text, fault), count in faults],
        unexplained=tally.unexplained,
        alerts=tally.alerts,
        attention=tally.attention,
    )


def summary_json(summary: Summary) -> bytes:
    """The summary as JSON."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n"


def _number(points: Fraction) -> float:
    return float(rounded(points))


def _spread(points: Sequence[Fraction]) -> Spread:
    return Spread(
        mean=_number(sum(points, Fraction(0)) / len(points)),
        lowest=_number(points[0]),
        lower_quartile=_number(_quantile(points, Fraction(1, 4))),
        median=_number(_quantile(points, Fraction(1, 2))),
        upper_quartile=_number(_quantile(points, Fraction(3, 4))),
        highest=_number(points[-1]),
    )


def _quantile(ordered: Sequence[Fraction], share: Fraction) -> Fraction:
    """The point at a share of the way from the first to the last, between its two neighbours."""
    place = share * (len(ordered) - 1)
    low = ordered[int(place)]
    high = ordered[min(int(place) + 1, len(ordered) - 1)]
    return low + (high - low) * (place - int(place))


def _histogram(points: Sequence[Fraction], maximum: Fraction) -> list[Bin]:
    if not maximum:
        return []
    counts = Counter(min(int(one / maximum * BINS), BINS - 1) for one in points)
    edges = [_number(maximum * place / BINS) for place in range(BINS + 1)]
    return [Bin(low=edges[place], high=edges[place + 1], count=counts[place]) for place in range(BINS)]
