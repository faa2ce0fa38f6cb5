package basalt

// #include "bridge.h"
import "C"

import (
	"encoding/binary"
	"iter"
	"runtime"
	"unsafe"
)

// Range bounds a scan. The zero value is all keys, forward.
type Range struct {
	Prefix  []byte // Only keys that begin with this; excludes Lower and Upper. nil: no bound.
	Lower   []byte // The first key, inclusive. nil: no bound.
	Upper   []byte // The end, exclusive. nil: no bound.
	Reverse bool   // From the last key to the first.
}

// Scan is a walk over records in the order of their keys.
//
//	scan := store.Scan(basalt.Range{Prefix: []byte("user/")})
//	for key, value := range scan.All() {
//		...
//	}
//	if err := scan.Err(); err != nil {
//		...
//	}
type Scan struct {
	keyspace *Keyspace
	snapshot *Snapshot
	tx       *Tx
	bounds   Range
	err      error
}

// Err gives what ended the last loop over All before its end; nil: nothing.
func (s *Scan) Err() error { return s.err }

// All gives the records. Each loop over it is a walk of its own. The slices belong to the caller.
func (s *Scan) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		iterator, err := s.begin()
		if s.err = err; err != nil {
			return
		}
		defer C.basalt_iterator_free(iterator)
		const sizeMax = 64 << 10
		for size := 4 << 10; ; size = min(size*4, sizeMax) {
			records, needed, err := s.fill(iterator, size)
			if s.err = err; err != nil || len(records) == 0 && needed == 0 {
				return
			}
			if len(records) == 0 {
				if records, _, err = s.fill(iterator, needed); err != nil {
					s.err = err
					return
				}
			}
			for len(records) > 0 {
				k := 8 + binary.NativeEndian.Uint32(records)
				v := k + binary.NativeEndian.Uint32(records[4:])
				if !yield(records[8:k:k], records[k:v:v]) {
					return
				}
				records = records[v:]
			}
		}
	}
}

func (s *Scan) begin() (*C.basalt_iterator, error) {
	options := C.bridge_options{keyspace: C.uint32_t(s.keyspace.id)}
	if s.snapshot != nil {
		if err := s.snapshot.check(); err != nil {
			return nil, err
		}
		options.snapshot = s.snapshot.c
	}
	var tx *C.basalt_transaction
	if s.tx != nil {
		tx = s.tx.c
	}
	var bounds C.int
	for _, bound := range []struct {
		bytes []byte
		bit   C.int
	}{{s.bounds.Prefix, C.BRIDGE_PREFIX}, {s.bounds.Lower, C.BRIDGE_LOWER}, {s.bounds.Upper, C.BRIDGE_UPPER}} {
		if bound.bytes != nil {
			bounds |= bound.bit
		}
	}
	prefix, prefixSize := bytesOf(s.bounds.Prefix)
	lower, lowerSize := bytesOf(s.bounds.Lower)
	upper, upperSize := bytesOf(s.bounds.Upper)
	var iterator *C.basalt_iterator
	r := results.Get().(*C.bridge_result)
	code := C.bridge_scan(s.keyspace.h.c, tx, prefix, prefixSize, lower, lowerSize, upper, upperSize, bounds,
		C.bool(s.bounds.Reverse), options, &iterator, r)
	runtime.KeepAlive(s)
	return iterator, finish(code, r)
}

// fill gives the next records as bridge_fill writes them, and the bytes that the one after them needs.
func (s *Scan) fill(iterator *C.basalt_iterator, size int) (records []byte, needed int, err error) {
	r := results.Get().(*C.bridge_result)
	buffer := make([]byte, size)
	code := C.bridge_fill(iterator, (*C.char)(unsafe.Pointer(&buffer[0])), C.size_t(size), C.bool(s.bounds.Reverse), r)
	records, needed = buffer[:r.size], int(r.version)
	return records, needed, finish(code, r)
}
