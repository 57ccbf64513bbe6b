"""Imports inside the package go one way only."""

import ast
from pathlib import Path

import warploom
from circles import find_circle

ROOT = Path(warploom.__file__).parent


def modules(root):
    """The files of a package by the names of their modules."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        parts = (root.name, *file.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(name, file, files):
    """The modules of `files` that a module imports, also inside of its functions."""
    found = set()
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*(above if node.level else []), *filter(None, [node.module])]
            base = ".".join(parts)
            for alias in node.names:  # a module of the package `base`, or a name in it
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in files else base)
    return (found & files.keys()) - {name}


def circle_of(root):
    files = modules(root)
    return find_circle({name: imported(name, file, files) for name, file in files.items()})


def test_no_modules_import_each_other():
    assert circle_of(ROOT) == []


def test_circles_are_found(tmp_path):
    root = tmp_path / "mine"
    (root / "inner").mkdir(parents=True)
    (root / "__init__.py").write_text("from mine import a\n")
    (root / "a.py").write_text("from mine.inner import b\n")
    (root / "inner" / "__init__.py").write_text("")
    (root / "inner" / "b.py").write_text("def late():\n    from ..inner.c import name\n")
    (root / "inner" / "c.py").write_text("import os\n")
    assert circle_of(root) == []
    (root / "inner" / "c.py").write_text("def late():\n    import mine.a\n")
    assert circle_of(root) == ["mine.a", "mine.inner.b", "mine.inner.c", "mine.a"]
    (root / "inner" / "c.py").write_text("def late():\n    from .. import a\n")
    assert circle_of(root) == ["mine.a", "mine.inner.b", "mine.inner.c", "mine.a"]
