"""Calibration: how far the suite's verdicts are from being wrong, in both directions.

`measure` runs the checks with many seeds on correct code and on known faults and notes how much of its tolerance every
comparison uses; `margins` says how far correct code stays below the bounds and how far faults lie above them; `power`
does both for the statistical checks, whose bounds are probabilities.
"""
