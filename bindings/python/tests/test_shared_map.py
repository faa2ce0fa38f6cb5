import array
import subprocess
import sys
from collections.abc import MutableMapping

import basalt
import pytest


def test_write_and_attach(tmp_path):
    path = tmp_path / "map"
    with basalt.SharedMap.create(path) as writer, basalt.SharedMap.attach(path) as reader:
        assert isinstance(writer, MutableMapping)
        writer["a"] = b"1"
        writer.put("b", "2")
        assert reader["a"] == b"1" and reader.get("x") is None and "b" in reader and len(reader) == 2
        assert sorted(reader) == [b"a", b"b"] and sorted(reader.items()) == [(b"a", b"1"), (b"b", b"2")]
        with pytest.raises(basalt.FailedPrecondition):
            reader["c"] = b""
        with pytest.raises(KeyError):
            reader["x"]
        with pytest.raises(KeyError):
            del writer["x"]
        del writer["a"]
        writer.delete("a")
        assert "a" not in reader and writer.pop("b") == b"2" and len(reader) == 0
        with pytest.raises(basalt.Busy):
            basalt.SharedMap.open(path)
        with pytest.raises(basalt.AlreadyExists):
            basalt.SharedMap.create(path)
        writer.sync()
        assert writer.stats()["entries"] == 0
    with pytest.raises(basalt.FailedPrecondition):
        writer["a"]


def test_build_and_other_processes(tmp_path):
    path = tmp_path / "map"
    records = ((f"k{i}", str(i)) for i in range(20000))
    with basalt.SharedMap.build(path, records) as writer:
        assert len(writer) == 20000
        writer["new"] = b"1"
        code = ("import sys, basalt\nmap = basalt.SharedMap.attach(sys.argv[1])\n"
                "assert map['k19999'] == b'19999' and map['new'] == b'1' and len(map) == 20001\n")
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        writer.compact()
        assert writer["new"] == b"1"
    with basalt.SharedMap.open(path) as writer:
        writer["new"] = b"2"
        assert writer["new"] == b"2"
        writer.clear()
        assert len(writer) == 0 and list(writer) == []


def test_a_failed_build_leaves_no_map(tmp_path):
    with pytest.raises(TypeError):
        basalt.SharedMap.build(tmp_path / "map", [("a", 1)])
    with pytest.raises(basalt.NotFound):
        basalt.SharedMap.attach(tmp_path / "map")


def test_views_lie_in_the_map():
    map = basalt.SharedMap.create(":memory:")
    map["v"] = array.array("d", [1.5, 2.5, 3.5])
    view = map.view("v")
    assert view.readonly and list(view.cast("d")) == [1.5, 2.5, 3.5] and map.view("x") is None
    # A view keeps its bytes, and does not keep other reads from what is newer.
    map["v"] = b"newer"
    map.compact()
    assert map["v"] == b"newer" and list(view.cast("d")) == [1.5, 2.5, 3.5]
    map.close()
    del map
    assert list(view.cast("d")) == [1.5, 2.5, 3.5]


def test_views_are_numpy_arrays():
    numpy = pytest.importorskip("numpy")
    map = basalt.SharedMap.create(":memory:")
    map["v"] = numpy.arange(100, dtype=numpy.float32)
    array = numpy.frombuffer(map.view("v"), dtype=numpy.float32)
    assert (array == numpy.arange(100)).all() and not array.flags.writeable and not array.flags.owndata
