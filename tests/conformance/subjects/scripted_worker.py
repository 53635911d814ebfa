"""A pytest plug-in for the tests of ours: runs judge with `fake_worker.py`, so the target is a script."""

import sys
from pathlib import Path

import rlassay.process

rlassay.process.COMMAND = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))
