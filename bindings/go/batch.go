package basalt

// #include "bridge.h"
import "C"

import "runtime"

// Batch is a list of writes that a store applies together. A record that no store takes is an error here, and Write
// then refuses the batch.
type Batch struct{ c *C.basalt_batch }

// NewBatch gives an empty batch.
func NewBatch() *Batch {
	b := &Batch{}
	r := results.Get().(*C.bridge_result)
	if err := finish(C.basalt_batch_create(&b.c, &r.error), r); err != nil {
		panic(err) // As make does without memory.
	}
	runtime.SetFinalizer(b, func(b *Batch) { C.basalt_batch_free(b.c) })
	return b
}

// Put sets a key; PutIn one of a keyspace.
func (b *Batch) Put(key, value []byte, options ...WriteOptions) error {
	return b.PutIn(&Keyspace{}, key, value, options...)
}

// PutIn is Put in a keyspace.
func (b *Batch) PutIn(k *Keyspace, key, value []byte, options ...WriteOptions) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	v, m := bytesOf(value)
	code := C.bridge_batch_put(b.c, p, n, v, m, optional(options).bridge(k.id), r)
	runtime.KeepAlive(b)
	return finish(code, r)
}

// Delete removes a key, present or not.
func (b *Batch) Delete(key []byte) error { return b.DeleteIn(&Keyspace{}, key) }

// DeleteIn is Delete in a keyspace.
func (b *Batch) DeleteIn(k *Keyspace, key []byte) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.bridge_batch_delete(b.c, p, n, WriteOptions{}.bridge(k.id), r)
	runtime.KeepAlive(b)
	return finish(code, r)
}

// DeleteRangeIn removes all keys of a keyspace in [begin, end); those of the same batch before it, too.
func (b *Batch) DeleteRangeIn(k *Keyspace, begin, end []byte) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(begin)
	e, m := bytesOf(end)
	code := C.bridge_batch_delete_range(b.c, p, n, e, m, WriteOptions{}.bridge(k.id), r)
	runtime.KeepAlive(b)
	return finish(code, r)
}

// RequireAbsent makes the batch apply only if the key is absent then.
func (b *Batch) RequireAbsent(k *Keyspace, key []byte) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.basalt_batch_require_absent(b.c, p, n, C.uint32_t(k.id), &r.error)
	runtime.KeepAlive(b)
	return finish(code, r)
}

// RequireUnchanged makes the batch apply only if nobody has written the key since it had this version (Entry).
func (b *Batch) RequireUnchanged(k *Keyspace, key []byte, version uint64) error {
	r := results.Get().(*C.bridge_result)
	p, n := bytesOf(key)
	code := C.basalt_batch_require_unchanged(b.c, p, n, C.uint64_t(version), C.uint32_t(k.id), &r.error)
	runtime.KeepAlive(b)
	return finish(code, r)
}

// Len gives the number of records.
func (b *Batch) Len() int {
	defer runtime.KeepAlive(b)
	return int(C.basalt_batch_count(b.c))
}

// Clear removes all records and conditions.
func (b *Batch) Clear() {
	C.basalt_batch_clear(b.c)
	runtime.KeepAlive(b)
}
