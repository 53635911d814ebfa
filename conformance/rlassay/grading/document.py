"""An HTML page that needs nothing besides itself: no scripts, nothing from elsewhere, and a policy that forbids both.

Whatever text goes into a page goes through `text`. The style sheet is allowed by its hash, so that no other can be
slipped in.
"""

from __future__ import annotations

import base64
import hashlib
import html

from rlassay.grading.feedback import shown

STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --dim: #57606a; --paper: #fff; --card: #f5f6f8; --line: #d0d5dc;
  --good: #14692c; --bad: #a8200d; --bar: #2f6fb0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --dim: #a0a9b4; --paper: #14171b; --card: #1e2329;
  --line: #3a424c; --good: #6fd08a; --bad: #ff9a88; --bar: #6ea8e0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 54rem; padding: 1.25rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .35rem 0; } .dim { color: var(--dim); } .total { font-size: 1.6rem; font-weight: 650; }
.good { color: var(--good); } .bad { color: var(--bad); } .mark { font-weight: 650; white-space: nowrap; }
.note { border-left: .25rem solid var(--line); padding: .1rem .75rem; margin: .5rem 0; }
ul { list-style: none; margin: .5rem 0; padding: 0; } li { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; } details > :not(summary) { margin-left: 1.1rem; }
dl { margin: .5rem 0; } dt { color: var(--dim); font-size: .9rem; } dd { margin: 0 0 .4rem; }
pre, dd { font-family: ui-monospace, monospace; font-size: .875rem; white-space: pre-wrap; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .3rem; padding: .6rem; overflow-x: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--dim); font-weight: 500; } td.number, th.number { text-align: right; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { display: block; width: 100%; height: auto; max-width: 40rem; } svg text { fill: var(--ink); font-size: 11px;
  text-anchor: middle; } svg rect { fill: var(--bar); } svg line { stroke: var(--line); }
"""

_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
"""Nothing may be loaded or run, but the style sheet of the page."""


def text(value: str) -> str:
    """A text as it can stand in an element or an attribute."""
    return html.escape(shown(value))


def document(title: str, body: str) -> bytes:
    """A page of a title, which is a text, and a body, which is HTML."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{body}
</body>
</html>
""".encode()
