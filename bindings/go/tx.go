package basalt

// #include "bridge.h"
import "C"

import "runtime"

// Tx reads and writes as if nobody else did. Store.Update is the short way to one.
type Tx struct {
	h *handle
	c *C.basalt_transaction
}

// TxOptions says how a transaction begins.
type TxOptions struct {
	MemoryLimit uint64 // Bytes of writes and of what reads leave. 0: 64 MiB.
}

// Begin begins a transaction, which is to be ended by Commit or Rollback.
func (s *Store) Begin(options ...TxOptions) (*Tx, error) {
	tx := &Tx{h: s.h}
	begin := C.basalt_transaction_options{struct_size: C.sizeof_basalt_transaction_options}
	if len(options) > 0 {
		begin.memory_limit = C.uint64_t(options[0].MemoryLimit)
	}
	err := s.h.call(func(c *C.basalt_store, e *C.basalt_error) C.int { return C.basalt_begin(c, &begin, &tx.c, e) })
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(tx, func(tx *Tx) { C.basalt_transaction_free(tx.c) })
	return tx, nil
}

// Commit applies the writes, if nothing that was read has changed; else it is Aborted. It ends the transaction with
// either answer.
func (t *Tx) Commit(options ...WriteOptions) error {
	r := results.Get().(*C.bridge_result)
	code := C.bridge_transaction_commit(t.c, optional(options).bridge(0), r)
	runtime.KeepAlive(t)
	return finish(code, r)
}

// Rollback ends the transaction without a change. It does nothing after a Commit.
func (t *Tx) Rollback() {
	C.basalt_transaction_rollback(t.c, nil)
	runtime.KeepAlive(t)
}

// Get gives the value of a key, and whether there is one.
func (t *Tx) Get(key []byte) (value []byte, found bool, err error) {
	return t.GetFrom(&Keyspace{}, key)
}

// GetFrom is Get in a keyspace.
func (t *Tx) GetFrom(k *Keyspace, key []byte) (value []byte, found bool, err error) {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.bridge_transaction_get(t.c, p, n, C.bridge_options{keyspace: C.uint32_t(k.id)}, r)
	runtime.KeepAlive(t)
	return finishValue(code, r)
}

// Put sets a key.
func (t *Tx) Put(key, value []byte, options ...WriteOptions) error {
	return t.PutIn(&Keyspace{}, key, value, options...)
}

// PutIn is Put in a keyspace.
func (t *Tx) PutIn(k *Keyspace, key, value []byte, options ...WriteOptions) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	v, m := bytesOf(value)
	code := C.bridge_transaction_put(t.c, p, n, v, m, optional(options).bridge(k.id), r)
	runtime.KeepAlive(t)
	return finish(code, r)
}

// Delete removes a key, present or not.
func (t *Tx) Delete(key []byte) error { return t.DeleteIn(&Keyspace{}, key) }

// DeleteIn is Delete in a keyspace.
func (t *Tx) DeleteIn(k *Keyspace, key []byte) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.bridge_transaction_delete(t.c, p, n, WriteOptions{}.bridge(k.id), r)
	runtime.KeepAlive(t)
	return finish(code, r)
}

// DeleteRangeIn removes all keys of a keyspace in [begin, end).
func (t *Tx) DeleteRangeIn(k *Keyspace, begin, end []byte) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(begin)
	e, m := bytesOf(end)
	code := C.bridge_transaction_delete_range(t.c, p, n, e, m, WriteOptions{}.bridge(k.id), r)
	runtime.KeepAlive(t)
	return finish(code, r)
}

// Scan walks keys with the transaction's writes up to the begin of the loop.
func (t *Tx) Scan(r Range) *Scan { return t.ScanOf(&Keyspace{}, r) }

// ScanOf is Scan in a keyspace.
func (t *Tx) ScanOf(k *Keyspace, r Range) *Scan {
	return &Scan{keyspace: &Keyspace{h: t.h, id: k.id}, bounds: r, tx: t}
}
