"""Opens a database and uses each basic operation once: put, get, scan, batch, transaction, snapshot."""

import basalt

with basalt.open("first-steps-py.db") as db:  # A MutableMapping of bytes on disk.
    db["user/1"] = "Ada"
    print(db["user/1"], db.get("user/9", b"absent"))

    # A batch is applied as a whole or not at all. So is a transaction, which can also read.
    with db.batch() as batch:
        batch["user/2"] = "Grace"
        batch.put("session/7", b"token", ttl=3600)  # Expires in an hour.

    def rename(tx):
        tx["user/3"] = tx["user/2"] + b" Hopper"
        tx.delete("user/2")

    db.transact(rename)  # Runs again after a conflict.

    with db.snapshot() as before:
        db["user/1"] = "Ada Lovelace"
        print(before["user/1"], db["user/1"])

    for key, value in db.scan(prefix="user/", reverse=True):
        print(key, value)

    visits = db.keyspace("visits")  # A separate set of keys, in the same transactions.
    visits.merge("user/1", "add", 1)
    print(basalt.counter(visits["user/1"]))

cache = basalt.Cache(capacity_bytes=1 << 20)
print(cache.get_or_compute("page/1", lambda: b"<html>", ttl=60))

with basalt.SharedMap.create("first-steps-py.map", overwrite=True) as shared:  # Other processes: attach().
    shared["weights"] = bytes(16)
    print(shared.view("weights").cast("f")[0])  # The bytes inside the map, without a copy.
