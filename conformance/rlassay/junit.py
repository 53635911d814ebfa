"""JUnit XML from a record: one test case per check, for the tools that show test reports.

A known deviation, a robustness finding of a run that is not strict, and a check without a judgement are skipped with
the reason: they do not fail the run, and are not passed either. What fails the run without being a check, a stale list
of known deviations or a missing end, is a test case of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rlassay.describe import failure_text, message, stale_text
from rlassay.record import CheckResult, Explanation, Record
from rlassay.verdict import FAILURES, counts

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that an XML 1.0 document cannot contain."""


def junit(record: Record) -> bytes:
    """The whole document, in UTF-8."""
    explanations = {explanation.operation: explanation for explanation in record.explanations}
    cases = [_case(result, record.header.strict, explanations.get(result.operations[0])) for result in record.checks]
    cases += _cases_of_the_run(record)
    suite = Element("testsuite", name=_xml(f"rlassay {record.header.target}"), tests=str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{sum(result.seconds for result in record.checks):.4f}")
    suite.extend(cases)
    root = Element("testsuites")
    root.append(suite)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(result: CheckResult, strict: bool, explanation: Explanation | None) -> Element:
    case = Element(
        "testcase", classname=f"rlassay.{result.operations[0]}", name=result.id, time=f"{result.seconds:.4f}"
    )
    if result.outcome == "pass":
        return case
    if result.known:
        SubElement(case, "skipped", message=_xml(f"known deviation: {result.known}"))
    elif result.outcome in FAILURES and not counts(result, strict):
        SubElement(case, "skipped", message=_xml(f"robustness finding: {message(result)}"))
    elif result.outcome in ("not-provided", "not-declared"):
        SubElement(case, "skipped", message=_xml(f"{result.outcome}: {message(result)}"))
    else:
        tag = "failure" if result.outcome == "fail" else "error"
        body = SubElement(case, tag, type=result.outcome, message=_xml(message(result)))
        body.text = _xml(failure_text(result, explanation))
    return case


def _cases_of_the_run(record: Record) -> Iterator[Element]:
    if not record.complete:
        text = f"incomplete run: {len(record.checks)} of {record.header.checks} checks ran"
        case = Element("testcase", classname="rlassay", name="the run is complete")
        SubElement(case, "error", type="incomplete", message=text)
        yield case
    stale = record.footer.stale if record.footer is not None else []
    for result in record.checks:
        if result.id in stale:
            case = Element("testcase", classname="rlassay", name=f"the known deviation {result.id} is up to date")
            SubElement(case, "failure", type="stale", message=_xml(stale_text(result)))
            yield case


def _xml(text: str) -> str:
    return NOT_XML.sub("", text)
