"""From what was handed in to a folder that a guest can load: copied, unpacked, notebooks made Python."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from rlassay.grading.archives import extract, is_archive
from rlassay.grading.entry import find_entry
from rlassay.grading.handed_in import Found, HandedIn, Submission
from rlassay.grading.layouts import find_submissions
from rlassay.grading.notebooks import to_python
from rlassay.grading.tree import Limits, SubmissionError, Tree, read_file, shown

__all__ = ["Found", "HandedIn", "Limits", "Submission", "SubmissionError", "Unpacked", "find_submissions", "unpack"]

MOST_NESTED = 2
"""So many times an archive is unpacked that is all an archive held."""


@dataclass(frozen=True)
class Unpacked:
    """A submission as a guest finds it.

    Attributes:
        folder: where the submission's own root is.
        target: what of it to load: a path in the folder ("." for all at its top) or, inside a package, a dotted module.
        imports: folders, as paths in the folder, from which its files import one another.
        notes: what was left out, renamed or converted, for the student to read.
    """

    folder: Path
    target: str
    imports: tuple[str, ...]
    notes: tuple[str, ...]


def unpack(submission: Submission, into: Path, limits: Limits) -> Unpacked:
    """Put a submission into an empty folder.

    Raises:
        SubmissionError: it is damaged, too large, or holds no Python; the text is for the student.
    """
    into.mkdir(parents=True, exist_ok=True)
    tree = Tree(into, limits)
    for file in submission.files:
        _put(file, tree)
    _open_archives(tree)
    problems = _convert_notebooks(tree)
    try:
        entry = find_entry(into, submission.files[0].name)
    except SubmissionError as error:
        raise SubmissionError("; ".join([*problems, str(error)])) from None
    tree.notes += problems
    return Unpacked(entry.root, entry.target, entry.imports, tree.all_notes())


def _put(file: HandedIn, tree: Tree) -> None:
    if file.path.is_symlink():
        tree.leave_out(file.name, "it is a link")
    elif file.path.is_dir() and file.name:
        tree.add_folder(file.path)
    elif file.path.is_dir():
        for path in sorted(file.path.iterdir()):
            if path.is_dir() and not path.is_symlink():
                tree.add_folder(path, f"{path.name}/")
            else:
                _put(HandedIn(path, path.name), tree)
    elif not file.path.is_file():
        tree.leave_out(file.name, "it is not a regular file")
    elif is_archive(file.name):
        extract(file.path, tree)
    else:
        tree.add(file.name, read_file(file.path))


def _open_archives(tree: Tree) -> None:
    """Unpack the archives in a tree that holds no Python: those of a folder that was handed in, or the one that is all
    that an archive held."""
    for _ in range(MOST_NESTED):
        files = [path for path in sorted(tree.root.rglob("*")) if path.is_file()]
        archives = [path for path in files if is_archive(path.name)]
        if any(path.suffix in (".py", ".ipynb") for path in files) or not archives:
            return
        if len(archives) > 1:
            held = ", ".join(shown(path.name) for path in archives[:5])
            raise SubmissionError(f"it holds several archives and no Python: {held}; hand in one archive of the files")
        with tempfile.TemporaryDirectory(dir=tree.root.parent) as beside:
            extract(archives[0].rename(Path(beside, archives[0].name)), tree)


def _convert_notebooks(tree: Tree) -> list[str]:
    """Write a Python file beside each notebook, and give what cannot be read."""
    problems = []
    for notebook in sorted(tree.root.rglob("*.ipynb")):
        if not notebook.is_file():
            continue
        name = notebook.relative_to(tree.root).as_posix()
        try:
            source, notes = to_python(notebook.read_bytes(), name)
        except SubmissionError as error:
            problems.append(str(error))
            continue
        tree.add(_beside(notebook).relative_to(tree.root).as_posix(), [source.encode()])
        tree.notes += notes
        notebook.unlink()
    return problems


def _beside(notebook: Path) -> Path:
    """Where a notebook's Python goes: under its own name, where that is free."""
    place = notebook.with_suffix(".py")
    while place.exists():
        place = place.with_name(f"{place.stem}_notebook.py")
    return place
