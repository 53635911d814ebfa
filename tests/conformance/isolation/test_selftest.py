"""The self-test finds what a confinement lets through, and lets through what holds."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from rlassay.guest import probe
from rlassay.guest.confine import LEVELS, Confinement
from rlassay.isolation.selftest import PROMISES, selftest

from .guests import ALL, LEVEL, linux, place

pytestmark = linux

NOTHING = dict.fromkeys(probe.names(), "")


@pytest.mark.parametrize(("level", "user"), ALL)
def test_each_level_withstands_what_it_promises(level: str, user: int | None) -> None:
    with place(level, user) as guests:
        result = selftest(guests.confinement, guests.attempts)
    assert result.broken == {}
    assert result.withstood
    assert set(result.attempts) == set(probe.names())


def test_without_confinement_the_attempts_succeed() -> None:
    def unconfined(confinement: Confinement, targets: dict[str, Any]) -> dict[str, str]:
        outcome = guests.run("tell(probe.attempts(targets))", confined=False, targets=targets, leaves=True)
        answer: dict[str, str] = outcome["answer"]
        return answer

    with place("namespaces", None) as guests:
        result = selftest(guests.confinement, unconfined)
    depends = {  # on the user, and on what surrounds a container
        *("become root", "have capabilities", "mount", "open devices", "make a user namespace"),
        *("trace a process", "read memory of a process"),
    }
    free = os.getuid() == 0 and LEVEL == "namespaces"
    expected = set(probe.names()) if free else set(probe.names()) - depends
    assert expected <= {name for name, what in result.attempts.items() if what}
    assert not result.withstood


def test_what_a_guest_left_counts_whatever_it_says() -> None:
    def lies(confinement: Confinement, targets: dict[str, Any]) -> dict[str, str]:
        Path(targets["missing"]).touch()
        Path(targets["file"]).chmod(0o600)
        socket.create_connection(("127.0.0.1", targets["port"])).close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", ("127.0.0.1", targets["udp"]))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("\0" + targets["abstract"])
        return NOTHING

    with place("filtered", None) as guests:
        result = selftest(guests.confinement, lies)
    assert set(result.broken) == {
        *("write a file", "change a file", "connect by tcp", "send by udp", "connect to an abstract socket"),
    }
    assert not result.withstood


def test_a_victim_that_died_and_a_process_that_stayed_are_noticed() -> None:
    def lies(confinement: Confinement, targets: dict[str, Any]) -> dict[str, str]:
        guests.run("tell(probe._ATTEMPTS['leave a daemon'](targets))", confined=False, targets=targets, leaves=True)
        guests.run("tell(probe._ATTEMPTS['kill a process'](targets))", confined=False, targets=targets, leaves=True)
        return NOTHING

    with place("namespaces", None) as guests:
        assert set(selftest(guests.confinement, lies).broken) == {"leave a daemon", "kill a process"}
        assert selftest(guests.confinement, lambda confinement, targets: NOTHING).withstood


def test_an_attempt_without_an_answer_is_not_withstood() -> None:
    with place("limits", None) as guests:
        result = selftest(guests.confinement, lambda confinement, targets: {})
    assert not result.withstood
    assert set(result.broken) == PROMISES["limits"]


def test_a_weaker_level_promises_no_more() -> None:
    assert [len(PROMISES[level]) for level in LEVELS] == sorted(
        (len(PROMISES[level]) for level in LEVELS), reverse=True
    )
    assert PROMISES["limits"] < PROMISES["filtered"] < PROMISES["namespaces"] == set(probe.names())
