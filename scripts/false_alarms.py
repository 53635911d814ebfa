"""False alarms: run the suite with many seeds on the reference and on the correct variants, and say what was flagged.

    python scripts/false_alarms.py --seeds 200 --profile quick
    python scripts/false_alarms.py --seeds 30 --profile standard --jobs 2 --only reference

A conformance check that flags one of them is wrong, or its oracle's scale is. What robustness checks find in a careless
variant is counted, not blamed; the reference has to be free of it. Exit status 1 if there was a false alarm.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / house) for house in ("spec", "impl", "conformance"))]

import torch

import rlassay_impl
from rlassay.engine import run_check
from rlassay.suite import all_checks
from rlassay.variants import Variant, all_variants
from rlassay_spec.convention import LECTURE

REFERENCE = {name: getattr(rlassay_impl, name) for name in rlassay_impl.__all__}


@dataclass(frozen=True)
class Finding:
    """A check that did not pass."""

    subject: str
    seed: int
    check: str
    kind: str
    message: str

    @property
    def alarm(self) -> bool:
        """Whether it is a false alarm: of a conformance check, or of any check of the reference."""
        return self.kind == "conformance" or self.subject == "reference"


def subjects() -> dict[str, Variant]:
    """The reference, as a variant like the others, and the variants."""
    return {"reference": Variant("reference", "the reference implementation", REFERENCE, LECTURE), **all_variants()}


def judge(task: tuple[str, str, int]) -> list[Finding]:
    """All that one run of the suite finds in one subject."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # careless variants warn of empty groups and of shapes that broadcast
    name, profile, seed = task
    variant = subjects()[name]
    subject = variant.beside(REFERENCE)
    return [
        Finding(name, seed, result.id, result.kind, result.failure.message if result.failure else result.outcome)
        for check in all_checks().values()
        if set(check.operations) & set(variant.functions)
        if (result := run_check(check, subject, profile, seed)).outcome not in ("pass", "not-provided", "not-declared")
    ]


def main() -> int:
    """Run all subjects with all seeds and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--profile", choices=("quick", "standard", "thorough"), default="quick")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", help="subject (repeatable); all of them if not given")
    options = parser.parse_args()
    names = [name for name in subjects() if not options.only or name in options.only]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [(name, options.profile, seed) for seed in seeds for name in names]
    findings: list[Finding] = []
    with get_context("spawn").Pool(options.jobs) as pool:
        for done, found in enumerate(pool.imap_unordered(judge, tasks, chunksize=4), start=1):
            findings += found
            if done % max(1, len(tasks) // 20) == 0:
                alarms = sum(finding.alarm for finding in findings)
                print(f"{done} of {len(tasks)} runs, {alarms} false alarms", file=sys.stderr)
    return report(findings, names, len(seeds), options.profile)


def report(findings: list[Finding], names: list[str], seeds: int, profile: str) -> int:
    """Print the false alarms, each check's first one in full, and the robustness findings as counts."""
    alarms = [found for found in findings if found.alarm]
    for (subject, check), count in Counter((alarm.subject, alarm.check) for alarm in alarms).most_common():
        first = min((a for a in alarms if (a.subject, a.check) == (subject, check)), key=lambda alarm: alarm.seed)
        print(f"{subject}: {check} in {count} of {seeds} seeds, first seed {first.seed}: {first.message}")
    findings_by_law = Counter(found.check.partition("/")[2] for found in findings if not found.alarm)
    for law, count in findings_by_law.most_common():
        print(f"robustness: {law}: {count} findings in careless variants")
    print(f"{len(names)} subjects × {seeds} seeds, profile {profile}: {len(alarms)} false alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
