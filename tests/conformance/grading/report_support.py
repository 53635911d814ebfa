"""What the tests of the reports share: an assignment, and grades, records and folders of results made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import msgspec

from rlassay.grading.assignment import Assignment, Part, Secret
from rlassay.grading.grade import SCHEMA, Grade, PartGrade
from rlassay.record import CheckResult, Explanation, Failure, Record, encode, gather
from rlassay.verdict import footer
from rlassay_spec.convention import Convention
from tests.conformance.cli_support import header

HOSTILE = "<script>alert(1)</script>&\"'\x1b[31m\x00\x07]]>\ud800\u202e=cmd()"
"""HTML, XML's end of CDATA, a terminal's escape, a lone surrogate, a change of direction, a formula."""

VOID = {"meta", "br"}


def assignment(title: str = "Losses", name: str = "k1 by hand", hints: bool = True) -> Assignment:
    """Two parts: of kl_k1 the check of the value is visible, kl_k2 is hidden."""
    return Assignment(
        path=Path("assignment.toml"),
        title=title,
        secret=Secret("PLANTED-the-secret-of-the-class"),
        sha256="a" * 64,
        convention=Convention(),
        examples=4,
        parts=(
            Part(name, Fraction(10), operation="kl_k1", partial="share", visible=("value",)),
            Part("kl_k2", Fraction(5), operation="kl_k2"),
        ),
        hints=hints,
    )


def planted(mark: str) -> Failure:
    """A failure every text of which carries a mark."""
    return Failure(
        message=f"{mark}-message",
        call=f"kl_k2({mark}-call)",
        case={f"{mark}-label": f"{mark}-case"},
        inputs={f"{mark}-argument": f"{mark}-input"},
        got=f"{mark}-got",
        expected=f"{mark}-expected",
        snippet=f"print('{mark}-snippet')",
        traceback=f'Traceback:\n  File "/submission/solution.py", line 3, in f\n    {mark}-traceback\n',
    )


def outcomes(assignment: Assignment, failing: dict[str, CheckResult], outcome: str = "pass") -> list[CheckResult]:
    """The results of all the checks of an assignment: those given, and the others with one outcome."""
    return [
        failing.get(check.id)
        or CheckResult(
            id=check.id,
            title=check.title,
            operations=list(check.operations),
            claims=list(check.claims),
            kind=check.kind,
            outcome=outcome,  # type: ignore[arg-type]
        )
        for part in assignment.parts
        for check in assignment.part_checks(part)
    ]


def run_of(results: Sequence[CheckResult], explanations: Sequence[Explanation] = (), **changes: object) -> Record:
    """A complete record."""
    return gather([header(checks=len(results), **changes), *results, *explanations, footer(results, [], strict=False)])


def grade(key: str = "ada", points: str = "12", **changes: object) -> Grade:
    """A grade over the two parts."""
    fields: dict[str, object] = {
        "schema": SCHEMA,
        "key": key,
        "id": key,
        "name": key.title(),
        "sha256": "0" * 64,
        "assignment": "a" * 64,
        "rlassay": "0.1.0",
        "level": "namespaces",
        "status": "graded",
        "points": points,
        "earned": points,
        "maximum": "15",
        "parts": [
            PartGrade(name="k1 by hand", points="10", earned="7", passed=9, failed=3),
            PartGrade(name="kl_k2", points="5", earned="5", passed=9, failed=0),
        ],
    }
    return Grade(**(fields | changes))  # type: ignore[arg-type]


def store(folder: Path, grades: Sequence[Grade], records: Sequence[Record | None] = (), **run: object) -> Path:
    """A folder of results."""
    settings: dict[str, object] = {
        "type": "run",
        "schema": 1,
        "rlassay": "0.1.0",
        "assignment": "a" * 64,
        "title": "Losses",
        "level": "namespaces",
        "layout": "plain",
        "submissions": len(grades),
    }
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(settings | run))
    for one, record in zip(grades, records or [None] * len(grades), strict=True):
        place = folder / "submissions" / one.key
        place.mkdir(parents=True)
        (place / "grade.json").write_bytes(msgspec.json.encode(one))
        if record is not None:
            lines = [record.header, *record.checks, *record.explanations]
            lines += [record.footer] if record.footer is not None else []
            (place / "record.ndjson").write_bytes(b"".join(map(encode, lines)))
    return folder


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.policy = self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes what is not open"

    def handle_data(self, data: str) -> None:
        self.said += data


def read_page(page: bytes) -> _Reader:
    """A page as a browser would take it; it is well-formed, runs nothing and loads nothing."""
    reader = _Reader()
    reader.feed(page.decode("utf-8"))
    reader.close()
    assert reader.open == []
    assert not reader.tags & {"script", "img", "link", "iframe", "object", "embed", "form", "a", "base"}
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert reader.policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in reader.policy
    return reader
