"""The pytest plug-in: the options of the suite, nothing else, so that it neither slows down nor changes other runs.

    pytest --pyargs rlassay.suite --rlassay TARGET

What they do is in `rlassay.suite.test_suite`, which is imported only when it is collected.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; they mean what they mean to `rlassay check`."""
    group = parser.getgroup("rlassay", "rlassay: judge an implementation (--pyargs rlassay.suite)")
    group.addoption(
        "--rlassay", metavar="TARGET", help="the implementation: a .py file, a folder, module or module:object"
    )
    group.addoption("--rlassay-interface", metavar="NAME", default="own", help="own or cs336")
    group.addoption("--rlassay-convention", metavar="NAME", help="judge by this convention, whatever TARGET declares")
    group.addoption("--rlassay-profile", metavar="NAME", default="standard", help="quick, standard or thorough")
    group.addoption("--rlassay-seed", metavar="N", type=int, default=0, help="chooses the random examples")
    group.addoption("--rlassay-timeout", metavar="SECONDS", type=float, help="how long one check may take")
    group.addoption("--rlassay-strict", action="store_true", help="robustness findings fail")
    group.addoption("--rlassay-expected", metavar="FILE", help="known deviations: failures that have to happen")
