"""What the package is made of: its stubs, its examples, its installation."""

import ast
import importlib.metadata
import pathlib
import subprocess
import sys

import basalt
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(basalt.__file__).parent
MIXINS = {"keys", "items", "values", "pop", "popitem", "setdefault", "update", "clear"}


def stub_classes():
    """The members of each class of the stub, with those that it inherits there."""
    module = ast.parse((PACKAGE / "__init__.pyi").read_text())
    members, names = {}, set()
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        if not isinstance(node, ast.ClassDef):
            continue
        names.add(node.name)
        found = members.setdefault(node.name, set())
        for base in node.bases:
            found |= members.get(getattr(base, "id", None), set())
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                found.add(member.name)
            elif isinstance(member, ast.AnnAssign):
                found.add(member.target.id)
    return members, {name for name in names if not name.startswith("_")}


def test_stubs_name_what_there_is():
    members, names = stub_classes()
    assert names == set(basalt.__all__)
    for name in names & set(members):
        cls = getattr(basalt, name)
        there = {member for member in dir(cls) if not member.startswith("_")} | {
            member for member in ("__getitem__", "__setitem__", "__delitem__", "__contains__", "__len__", "__iter__",
                                  "__reversed__", "__bool__", "__enter__", "__exit__") if member in dir(cls)}
        if issubclass(cls, (BaseException, tuple, list)):
            continue
        assert members[name] - {"__init__"} == there - MIXINS | (members[name] & MIXINS), name


def test_stubs_pass_a_type_checker(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text("import basalt\n"
                       "with basalt.open(':memory:') as db:\n"
                       "    db['a'] = b'1'\n"
                       "    value: bytes = db['a']\n"
                       "    maybe: int = db.get('a')  # wrong\n"
                       "    total: int = db.transact(lambda tx: len(tx))\n"
                       "    near: float = db.collection('c', 2).search([1, 0])[0].distance\n"
                       "    ids: list[str] = [node.id for node in db.graph().khop('a', 2)]\n"
                       "    text: str = db.corpus().retrieve('a').pop().text\n")
    ended = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"),
                            str(program)], capture_output=True, text=True, check=False)
    assert "program.py:5: error" in ended.stdout and ended.stdout.count("error:") == 1, ended.stdout


def test_is_typed_and_installed():
    assert (PACKAGE / "py.typed").exists()
    assert importlib.metadata.version("basalt-store") == "0.1.0"
    files = {file.name for file in PACKAGE.iterdir() if file.name != "__pycache__"}
    assert files == {"__init__.py", "__init__.pyi", "_types.py", "langgraph.py", "py.typed", pathlib.Path(basalt._native.__file__).name}


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(example, tmp_path):
    subprocess.run([sys.executable, str(example)], cwd=tmp_path, check=True, stdout=subprocess.PIPE)


def test_the_manual_shows_the_example():
    manual = (ROOT / "docs" / "python.md").read_text()
    for example in (ROOT / "examples").glob("*.py"):
        assert example.read_text() in manual, f"docs/python.md quotes something else than {example.name}"
