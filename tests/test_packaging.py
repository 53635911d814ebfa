"""What is built is what is in the tree: the wheel, the source distribution, their metadata."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import rlassay

ROOT = Path(__file__).parents[1]
HOUSES = ["spec/rlassay_spec", "impl/rlassay_impl", "conformance/rlassay"]


def build(tree: Path, target: str, folder: Path) -> Path:
    """Build one target with the build tool of this environment: no isolation, hence no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    run = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    (product,) = folder.iterdir()
    return product


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(ROOT, "wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"rlassay-{rlassay.__version__}.dist-info/METADATA").decode())


def shipped(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_the_tests_run_on_this_checkout() -> None:
    assert Path(rlassay.__file__) == ROOT / "conformance/rlassay/__init__.py"


def test_the_wheel_holds_every_file_of_the_three_packages_and_no_other(wheel: zipfile.ZipFile) -> None:
    in_tree = {
        str(path.relative_to((ROOT / house).parent))
        for house in HOUSES
        for path in (ROOT / house).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped(wheel) == in_tree


@pytest.mark.parametrize("package", ["rlassay_spec", "rlassay_impl", "rlassay"])
def test_each_package_says_that_it_is_typed(package: str, wheel: zipfile.ZipFile) -> None:
    assert f"{package}/py.typed" in wheel.namelist()


def test_the_source_distribution_builds_the_same_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    with tarfile.open(build(ROOT, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "tree", filter="data")
    (tree,) = (tmp_path / "tree").iterdir()
    rebuilt = zipfile.ZipFile(build(tree, "wheel", tmp_path / "wheel"))
    assert {name: rebuilt.read(name) for name in rebuilt.namelist()} == {
        name: wheel.read(name) for name in wheel.namelist()
    }


def test_the_metadata_names_version_python_and_license(metadata: Message, wheel: zipfile.ZipFile) -> None:
    assert metadata["Name"] == "rlassay"
    assert metadata["Version"] == rlassay.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    license_file = f"rlassay-{rlassay.__version__}.dist-info/licenses/LICENSE"
    assert wheel.read(license_file) == (ROOT / "LICENSE").read_bytes()


def test_the_entry_points_are_the_command_and_the_pytest_plugin(wheel: zipfile.ZipFile) -> None:
    entry_points = wheel.read(f"rlassay-{rlassay.__version__}.dist-info/entry_points.txt").decode().split()
    assert entry_points == [
        *("[console_scripts]", "rlassay", "=", "rlassay.__main__:main"),
        *("[pytest11]", "rlassay", "=", "rlassay.plugin"),
    ]


def test_the_change_log_speaks_of_this_version() -> None:
    assert f"## {rlassay.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_direct_dependency_is_pinned_for_development() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = {line.partition(">=")[0] for line in [*project["dependencies"], *extras["test"], *extras["lint"]]}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    assert wanted <= pinned, f"constraints.txt lacks {sorted(wanted - pinned)}"
