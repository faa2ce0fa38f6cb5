// Package basalt is an embedded key-value store: a durable, ordered map from bytes to bytes with transactions,
// snapshots and expiry. It calls libbasalt.so.
//
//	store, err := basalt.Open("/var/lib/app/db", basalt.Options{})
//	...
//	defer store.Close()
//	err = store.Put([]byte("user/42"), []byte("Ada"))
//	value, found, err := store.Get([]byte("user/42"))
//
// All functions may be called from any goroutine, except those of a Batch and a Tx, which belong to one goroutine at a
// time. Slices that are passed are not kept, and those that are returned belong to the caller.
package basalt

// #cgo LDFLAGS: -lbasalt
// #include "bridge.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"
	"unsafe"
)

// handle owns a basalt_store. Close makes it unusable; it is freed when no call and no object refers to it any more.
type handle struct{ c *C.basalt_store }

func newHandle(c *C.basalt_store) *handle {
	h := &handle{c}
	runtime.SetFinalizer(h, func(h *handle) { C.basalt_store_free(h.c) })
	return h
}

// Keyspace is a set of keys of its own inside a store.
type Keyspace struct {
	h    *handle
	id   uint32
	name string
}

// Store is a database or a memtable. Its own functions work on the default keyspace.
type Store struct{ Keyspace }

// Options says how a database is opened. The zero value is the default.
type Options struct {
	MustExist    bool          // A database that is absent is NotFound, not made.
	MemoryBudget uint64        // Bytes. 0: a quarter of the memory.
	Durability   Durability    // Of writes that name none; 0: Process.
	DefaultTTL   time.Duration // 0: records do not expire.
}

func (o Options) c() C.basalt_db_options {
	return C.basalt_db_options{
		struct_size:    C.sizeof_basalt_db_options,
		memory_budget:  C.uint64_t(o.MemoryBudget),
		default_ttl_ms: C.int64_t(o.DefaultTTL / time.Millisecond),
		durability:     C.uint32_t(o.Durability),
		must_exist:     C.bool(o.MustExist),
	}
}

func opened(c *C.basalt_store, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	return &Store{Keyspace{h: newHandle(c)}}, nil
}

// Open opens the database in a directory, or makes one. ":memory:" is one that ends with the Store.
func Open(path string, options Options) (*Store, error) {
	return open(path, options, false)
}

// OpenReadOnly opens a database as it is at this moment, beside a process that may write to it.
func OpenReadOnly(path string, options Options) (*Store, error) {
	return open(path, options, true)
}

func open(path string, options Options, readOnly bool) (*Store, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	c, r := options.c(), results.Get().(*C.bridge_result)
	var store *C.basalt_store
	var code C.int
	if readOnly {
		code = C.basalt_open_read_only(name, &c, &store, &r.error)
	} else {
		code = C.basalt_open(name, &c, &store, &r.error)
	}
	return opened(store, finish(code, r))
}

// NewMemTable makes a store in memory. A memoryBudget of 0 is 256 MiB.
func NewMemTable(memoryBudget uint64) (*Store, error) {
	c := C.basalt_memtable_options{
		struct_size: C.sizeof_basalt_memtable_options, memory_budget: C.uint64_t(memoryBudget)}
	r := results.Get().(*C.bridge_result)
	var store *C.basalt_store
	return opened(store, finish(C.basalt_memtable_create(&c, &store, &r.error), r))
}

// Destroy removes a database that nobody has open.
func Destroy(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	r := results.Get().(*C.bridge_result)
	return finish(C.basalt_destroy(name, &r.error), r)
}

// Close finishes background work, syncs the log and lets go of the database. What is used afterwards is
// FailedPrecondition. A second Close gives the answer of the first.
func (s *Store) Close() error {
	return s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int { return C.basalt_close(c, e) })
}

// Sync makes every write acknowledged before the call survive a power cut.
func (s *Store) Sync() error {
	return s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int { return C.basalt_sync(c, e) })
}

// Flush writes what is in memory to tables.
func (s *Store) Flush() error {
	return s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int { return C.basalt_flush(c, e) })
}

// Compact merges a keyspace's tables, and drops what is deleted or has expired.
func (k *Keyspace) Compact() error {
	return k.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int {
		return C.basalt_compact(c, C.uint32_t(k.id), nil, 0, nil, 0, e)
	})
}

// Stats gives the store's figures as a JSON object.
func (s *Store) Stats() (json []byte, err error) {
	err = s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int {
		var text *C.char
		code := C.basalt_stats(c, &text, e)
		if text != nil {
			json = []byte(C.GoString(text))
			C.basalt_free(unsafe.Pointer(text))
		}
		return code
	})
	return json, err
}

// call is for what is called rarely: it makes a closure.
func (h *handle) call(fn func(*C.basalt_store, *C.basalt_error) C.int) error {
	r := results.Get().(*C.bridge_result)
	code := fn(h.c, &r.error)
	runtime.KeepAlive(h)
	return finish(code, r)
}

// OpenKeyspace opens a keyspace, and makes it where it is absent.
func (s *Store) OpenKeyspace(name string) (*Keyspace, error) {
	var id C.uint32_t
	p, n := bytesOf([]byte(name))
	err := s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int {
		return C.basalt_keyspace_open_or_create(c, p, n, nil, &id, e)
	})
	if err != nil {
		return nil, err
	}
	return &Keyspace{s.h, uint32(id), name}, nil
}

// DropKeyspace removes a keyspace with all that it holds.
func (s *Store) DropKeyspace(k *Keyspace) error {
	return s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int {
		return C.basalt_keyspace_drop(c, C.uint32_t(k.id), e)
	})
}

// Name gives the keyspace's name; "" for the default one.
func (k *Keyspace) Name() string { return k.name }

// Get gives the value of a key, and whether there is one.
func (k *Keyspace) Get(key []byte) (value []byte, found bool, err error) {
	return k.get(key, nil)
}

func (k *Keyspace) get(key []byte, snapshot *C.basalt_snapshot) (value []byte, found bool, err error) {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.bridge_get(k.h.c, p, n, C.bridge_options{keyspace: C.uint32_t(k.id), snapshot: snapshot}, r)
	runtime.KeepAlive(k.h)
	return finishValue(code, r)
}

// Entry is a value with what the store knows of its record.
type Entry struct {
	Value   []byte
	Version uint64    // Changes with each write; for Batch.RequireUnchanged.
	Expiry  time.Time // The zero Time: it does not expire.
}

// GetEntry gives the record of a key; nil: there is none.
func (k *Keyspace) GetEntry(key []byte) (*Entry, error) {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.bridge_get_entry(k.h.c, p, n, C.bridge_options{keyspace: C.uint32_t(k.id)}, r)
	runtime.KeepAlive(k.h)
	version, expiry := uint64(r.version), int64(r.expiry_ms)
	value, found, err := finishValue(code, r)
	if !found || err != nil {
		return nil, err
	}
	entry := &Entry{Value: value, Version: version}
	if expiry != 0 {
		entry.Expiry = time.UnixMilli(expiry)
	}
	return entry, nil
}

// Put sets one key.
func (k *Keyspace) Put(key, value []byte, options ...WriteOptions) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	v, m := bytesOf(value)
	code := C.bridge_put(k.h.c, p, n, v, m, optional(options).bridge(k.id), r)
	runtime.KeepAlive(k.h)
	return finish(code, r)
}

// PutIfAbsent sets the key if it is absent, and tells whether it was.
func (k *Keyspace) PutIfAbsent(key, value []byte, options ...WriteOptions) (created bool, err error) {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	v, m := bytesOf(value)
	code := C.bridge_put_if_absent(k.h.c, p, n, v, m, optional(options).bridge(k.id), r)
	runtime.KeepAlive(k.h)
	created = bool(r.found) && code == 0
	return created, finish(code, r)
}

// Delete removes one key, present or not.
func (k *Keyspace) Delete(key []byte, options ...WriteOptions) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.bridge_delete(k.h.c, p, n, optional(options).bridge(k.id), r)
	runtime.KeepAlive(k.h)
	return finish(code, r)
}

// DeleteRange removes all keys in [begin, end).
func (k *Keyspace) DeleteRange(begin, end []byte, options ...WriteOptions) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(begin)
	e, m := bytesOf(end)
	code := C.bridge_delete_range(k.h.c, p, n, e, m, optional(options).bridge(k.id), r)
	runtime.KeepAlive(k.h)
	return finish(code, r)
}

// Add adds to a number of 8 little-endian bytes, without reading it. An absent key becomes n.
func (k *Keyspace) Add(key []byte, n int64) error {
	return k.merge(key, C.BASALT_MERGE_ADD, binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// Append appends to a value, without reading it.
func (k *Keyspace) Append(key, data []byte) error { return k.merge(key, C.BASALT_MERGE_APPEND, data) }

func (k *Keyspace) merge(key []byte, op C.int, operand []byte) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	v, m := bytesOf(operand)
	code := C.bridge_merge(k.h.c, p, n, op, v, m, WriteOptions{}.bridge(k.id), r)
	runtime.KeepAlive(k.h)
	return finish(code, r)
}

// Write applies a batch atomically, if its conditions hold; else it is Aborted and changes nothing.
func (s *Store) Write(b *Batch, options ...WriteOptions) error {
	r := results.Get().(*C.bridge_result)
	code := C.bridge_write_batch(s.h.c, b.c, optional(options).bridge(0), r)
	runtime.KeepAlive(s.h)
	runtime.KeepAlive(b)
	return finish(code, r)
}

// Scan walks keys in order, as they are when the loop over All begins.
func (k *Keyspace) Scan(r Range) *Scan { return &Scan{keyspace: k, bounds: r} }

// Snapshot is a store's contents at one moment.
type Snapshot struct {
	h *handle
	c *C.basalt_snapshot
}

// Snapshot takes the present moment. Versions that it can see are kept until it is closed.
func (s *Store) Snapshot() (*Snapshot, error) {
	snapshot := &Snapshot{h: s.h}
	err := s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int {
		return C.basalt_snapshot_create(c, &snapshot.c, e)
	})
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(snapshot, func(s *Snapshot) { C.basalt_snapshot_free(s.c) })
	return snapshot, nil
}

// Close lets go of the snapshot. No other goroutine may be inside a call with it. What is read afterwards is
// FailedPrecondition.
func (s *Snapshot) Close() {
	runtime.SetFinalizer(s, nil)
	C.basalt_snapshot_free(s.c)
	s.c = nil
}

func (s *Snapshot) check() error {
	if s.c != nil {
		return nil
	}
	return &Error{Code: FailedPrecondition, SubCode: "Closed", Message: "the snapshot is closed"}
}

// Get gives the value that a key had.
func (s *Snapshot) Get(key []byte) (value []byte, found bool, err error) {
	return s.GetFrom(&Keyspace{h: s.h}, key)
}

// GetFrom is Get in a keyspace of the same store.
func (s *Snapshot) GetFrom(k *Keyspace, key []byte) (value []byte, found bool, err error) {
	if err := s.check(); err != nil {
		return nil, false, err
	}
	value, found, err = k.get(key, s.c)
	runtime.KeepAlive(s)
	return value, found, err
}

// Scan walks the keys that there were.
func (s *Snapshot) Scan(r Range) *Scan { return s.ScanOf(&Keyspace{h: s.h}, r) }

// ScanOf is Scan in a keyspace of the same store.
func (s *Snapshot) ScanOf(k *Keyspace, r Range) *Scan {
	return &Scan{keyspace: k, bounds: r, snapshot: s}
}

// Update calls fn with a transaction and commits it; again, after a short pause, where another writer was faster. An
// error of fn rolls back and is returned, unless it is Aborted. fn may be called several times and must not commit.
func (s *Store) Update(ctx context.Context, fn func(tx *Tx) error, options ...WriteOptions) error {
	const pauseMax = 20 * time.Millisecond
	for pause := 50 * time.Microsecond; ; pause = min(pause*2, pauseMax) {
		err := s.attempt(fn, options)
		if !errors.Is(err, Aborted) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(rand.N(pause)):
		}
	}
}

func (s *Store) attempt(fn func(tx *Tx) error, options []WriteOptions) error {
	tx, err := s.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(options...)
}
