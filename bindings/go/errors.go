package basalt

// #include "bridge.h"
import "C"

import (
	"math"
	"sync"
	"time"
	"unsafe"
)

// Code says why a call failed.
type Code int

// The codes of basalt/c.h. An absent key is no error.
const (
	InvalidArgument    Code = 1
	NotFound           Code = 2
	AlreadyExists      Code = 3
	FailedPrecondition Code = 4
	ResourceExhausted  Code = 5
	Busy               Code = 6
	Aborted            Code = 7
	Cancelled          Code = 8
	Unsupported        Code = 9
	IOError            Code = 10
	Corruption         Code = 11
	TypeMismatch       Code = 12
	WouldBlock         Code = 13
	Unavailable        Code = 14
	DeadlineExceeded   Code = 15
	PermissionDenied   Code = 16
	OutOfRange         Code = 17
)

// String gives the name of the code, for example "InvalidArgument".
func (c Code) String() string { return C.GoString(C.basalt_code_name(C.int(c))) }

// Error makes a Code a target of errors.Is: errors.Is(err, basalt.Aborted).
func (c Code) Error() string { return c.String() }

// Error is what every failed call returns.
type Error struct {
	Code    Code
	SubCode string // For example "Closed" or "DiskFull"; "" where there is no more to say.
	Message string // What was attempted, on what, and what to do.
}

func (e *Error) Error() string {
	if e.SubCode == "" {
		return e.Code.String() + ": " + e.Message
	}
	return e.Code.String() + " (" + e.SubCode + "): " + e.Message
}

// Unwrap gives the Code, so that errors.Is finds it.
func (e *Error) Unwrap() error { return e.Code }

// Where a call's answers go. It is too large to be made for each call.
var results = sync.Pool{New: func() any { return new(C.bridge_result) }}

// finish turns a call's code into an error, and gives the result back.
func finish(code C.int, r *C.bridge_result) error {
	var err error
	if code != 0 {
		err = &Error{
			Code:    Code(code),
			SubCode: C.GoString(C.basalt_sub_code_name(C.int(r.error.sub_code))),
			Message: C.GoString(&r.error.message[0]),
		}
	}
	results.Put(r)
	return err
}

// finishValue is finish for a call that gives a value.
func finishValue(code C.int, r *C.bridge_result) (value []byte, found bool, err error) {
	found = bool(r.found) && code == 0
	switch {
	case found && r.large != nil:
		value = append(make([]byte, 0, r.size), unsafe.Slice((*byte)(unsafe.Pointer(r.large)), r.size)...)
	case found:
		value = append(make([]byte, 0, r.size), unsafe.Slice((*byte)(unsafe.Pointer(&r.small[0])), r.size)...)
	}
	C.free(unsafe.Pointer(r.large))
	return value, found, finish(code, r)
}

// bytesOf gives the address of a slice, which C reads during the call only.
func bytesOf(b []byte) (unsafe.Pointer, C.size_t) {
	return unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b))
}

// Durability says how much of an acknowledged write may be lost.
type Durability uint32

const (
	DefaultDurability Durability = 0 // The keyspace's, or else the store's: Process.
	Memory            Durability = 1 // All that is not flushed. Only of a store or keyspace.
	Interval          Durability = 2
	Process           Durability = 3 // Nothing, when the process is killed.
	Power             Durability = 4 // Nothing, when the power is cut.
)

// NoTTL as a WriteOptions.TTL: the record does not expire, whatever the default is.
const NoTTL time.Duration = math.MinInt64

// WriteOptions says how a write is made. The zero value is the default.
type WriteOptions struct {
	TTL        time.Duration // Of puts. 0: the keyspace's default.
	Durability Durability
}

func (o WriteOptions) bridge(keyspace uint32) C.bridge_options {
	ttl := int64(-2) // Of a negative one, which the library refuses.
	switch {
	case o.TTL == NoTTL:
		ttl = -1
	case o.TTL >= 0:
		ttl = int64((o.TTL + time.Millisecond - 1) / time.Millisecond)
	}
	return C.bridge_options{ttl_ms: C.int64_t(ttl), durability: C.uint32_t(o.Durability), keyspace: C.uint32_t(keyspace)}
}

func optional(options []WriteOptions) WriteOptions {
	if len(options) == 0 {
		return WriteOptions{}
	}
	return options[0]
}
