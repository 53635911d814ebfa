"""The matrix: every check against every known fault and every correct variant.

A suite is worth what it catches and what it leaves alone. `rows` runs the checks on one subject, `run` does so for all
of them in parallel and keeps what has not changed since an earlier run, `verdict` says what the rows amount to, `page`
writes them down for the documentation.
"""
