import math
import threading
import time

import basalt
import pytest


def test_put_get_and_delete():
    cache = basalt.Cache(1 << 20)
    cache["a"] = b"1"
    assert cache["a"] == b"1" and "a" in cache and cache.get("x") is None and len(cache) == 1
    with pytest.raises(KeyError):
        cache["x"]
    assert not cache.put_if_absent("a", b"2") and cache.put_if_absent("b", b"2")
    assert cache.take("b") == b"2" and cache.take("b", b"") == b""
    assert cache.delete("a") and not cache.delete("a")
    with pytest.raises(KeyError):
        del cache["a"]
    cache["c"] = b"x" * 10000
    cache.clear()
    assert len(cache) == 0 and cache.stats()["capacity_bytes"] == 1 << 20
    with pytest.raises(basalt.InvalidArgument):
        basalt.Cache(1)


def test_ttl():
    cache = basalt.Cache(default_ttl=3600)
    cache.put("a", b"1", ttl=0.02)
    cache.put("b", b"1", ttl=math.inf)
    assert cache.touch("b", 60) and not cache.touch("x", 60)
    deadline = time.monotonic() + 30
    while "a" in cache:
        assert time.monotonic() < deadline
    with pytest.raises(TypeError):
        cache.touch("b", None)


def test_capacity_bounds_memory():
    cache = basalt.Cache(1 << 20)
    for i in range(10000):
        cache[str(i)] = b"x" * 1000
    stats = cache.stats()
    assert stats["bytes"] <= 1 << 20 and stats["evicted"] > 8000 and cache["9999"] == b"x" * 1000


def test_get_or_compute_computes_once():
    cache, calls = basalt.Cache(), []

    def compute():
        calls.append(1)
        time.sleep(0.05)
        return b"v"

    threads = [threading.Thread(target=lambda: cache.get_or_compute("k", compute)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and cache["k"] == b"v"


def test_get_or_compute_passes_exceptions_on():
    cache = basalt.Cache()

    def fail():
        raise ZeroDivisionError("of the function")

    with pytest.raises(ZeroDivisionError, match="of the function"):
        cache.get_or_compute("k", fail)
    with pytest.raises(TypeError):
        cache.get_or_compute("k", lambda: 7)
    assert "k" not in cache and cache.get_or_compute("k", lambda: "v", ttl=60) == b"v"
