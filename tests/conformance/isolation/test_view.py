"""What of rlassay lies where an interpreter looks is found, however it was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlassay
from rlassay.isolation import view as view_module
from rlassay.isolation.view import SYSTEM, view_of


def made(folder: Path, *entries: str) -> Path:
    """A folder with these files; those that end in / are folders."""
    for entry in entries:
        path = folder / entry
        if entry.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    return folder


def hidden(prefix: Path, *path: Path) -> set[str]:
    """What is hidden of an interpreter with this prefix and path, relative to its prefix."""
    view = view_of([str(prefix)], [str(entry) for entry in path])
    assert str(prefix) in view.readable
    return {str(Path(entry).relative_to(prefix)) for entry in view.hidden if Path(entry).is_relative_to(prefix)}


OTHERS = (
    "numpy/__init__.py",
    "numpy-2.0.dist-info/RECORD",
    "torch/__init__.py",
    "six.py",
    "_distutils_hack/",
    "README",
)


def test_a_wheel_in_site_packages_is_hidden_with_its_metadata(tmp_path: Path) -> None:
    site = made(
        tmp_path / "lib/site-packages",
        *OTHERS,
        *(
            "rlassay/__init__.py",
            "rlassay_spec/__init__.py",
            "rlassay_impl/__init__.py",
            "rlassay-0.1.0.dist-info/RECORD",
        ),
    )
    assert {Path(entry).name for entry in hidden(tmp_path, site)} == {
        *("rlassay", "rlassay_spec", "rlassay_impl", "rlassay-0.1.0.dist-info"),
    }


@pytest.mark.parametrize(
    "entry",
    [
        *("_rlassay.pth", "rlassay.pth", "__editable__.rlassay-0.1.0.pth", "__editable___rlassay_0_1_0_finder.py"),
        *("rlassay.egg-link", "rlassay-0.1.0-py3.12.egg", "RLAssay-0.1.0.dist-info", "rlassay-0.1.0.egg-info"),
        *(
            "rlassay.py",
            "rlassay.cpython-312-x86_64-linux-gnu.so",
            "rlassay_spec-0.1.0.dist-info",
            "__editable__.rlassay_spec-1.pth",
        ),
    ],
)
def test_every_form_of_an_installation_is_hidden(tmp_path: Path, entry: str) -> None:
    site = made(tmp_path / "lib/python3/dist-packages", *OTHERS, entry)
    assert {Path(found).name for found in hidden(tmp_path, site)} == {entry}


@pytest.mark.parametrize("entry", ["rlassayer/", "my_rlassay/", "__pycache__/", "_rl.pth", "__editable__.other-1.pth"])
def test_nothing_else_is_hidden(tmp_path: Path, entry: str) -> None:
    assert hidden(tmp_path, made(tmp_path / "site", *OTHERS, entry)) == set()


def test_every_folder_of_the_path_is_searched(tmp_path: Path) -> None:
    first, second = (made(tmp_path / name, "rlassay/__init__.py") for name in ("user", "system"))
    assert hidden(tmp_path, first, second, tmp_path / "missing", made(tmp_path, "python312.zip") / "python312.zip") == {
        *("user/rlassay", "system/rlassay"),
    }


def test_another_checkout_on_the_path_of_another_interpreter_is_hidden(tmp_path: Path) -> None:
    checkout = made(tmp_path / "checkout/conformance", "rlassay/__init__.py")
    prefix = made(tmp_path / "env", "bin/")
    view = view_of([str(prefix)], [str(checkout)])
    assert str(checkout / "rlassay") in view.hidden


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that rlassay runs from, below a link."""
    real = made(tmp_path / "real/env/src", "spec/rlassay_spec/", "impl/rlassay_impl/", "conformance/rlassay/isolation/")
    monkeypatch.setattr(view_module, "__file__", str(real / "conformance/rlassay/isolation/view.py"))
    return real


def test_of_a_checkout_on_the_path_nothing_is_readable(tmp_path: Path, checkout: Path) -> None:
    roots = [checkout / house for house in ("spec", "impl", "conformance")]
    view = view_of([], [str(root) for root in roots])
    assert set(view.readable) <= set(SYSTEM)


@pytest.mark.parametrize("through", ["real", "link"])
def test_a_checkout_inside_of_a_prefix_is_hidden(tmp_path: Path, checkout: Path, through: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    view = view_of([str(tmp_path / through / "env")], [])
    assert {Path(entry).resolve() for entry in view.hidden} == {
        *(checkout / "spec/rlassay_spec", checkout / "impl/rlassay_impl", checkout / "conformance/rlassay"),
    }


def test_site_packages_without_numpy_stay_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rlassay is the user's own and numpy the system's."""
    site = made(tmp_path / "user", "rlassay/isolation/", "rlassay-0.1.0.dist-info/", "torch/", "torch-2.9.dist-info/")
    monkeypatch.setattr(view_module, "__file__", str(site / "rlassay/isolation/view.py"))
    view = view_of([], [str(site)])
    assert str(site) in view.readable
    assert {str(site / "rlassay"), str(site / "rlassay-0.1.0.dist-info")} == set(view.hidden)


def test_what_is_readable_exists_and_comes_once(tmp_path: Path) -> None:
    view = view_of([str(tmp_path), str(tmp_path), "", str(tmp_path / "missing")], ["", str(tmp_path)])
    assert view.readable.count(str(tmp_path)) == 1
    assert all(Path(place).exists() and Path(place).is_absolute() for place in view.readable)
    assert {"/usr"} <= set(view.readable) or not Path("/usr").exists()


def test_this_rlassay_is_not_to_be_seen(tmp_path: Path) -> None:
    """Wherever it is."""
    here = Path(rlassay.__file__).resolve().parent
    view = view_of([str(here.parents[1])], [str(here.parent)])
    assert any(here.is_relative_to(Path(entry).resolve()) for entry in view.hidden)
