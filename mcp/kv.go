package main

import (
	"fmt"
	"strings"
	"time"

	"basalt"
)

// The tools of the profile kv: a space also has keys with values, which no other tool finds.

// valueBytesMax bounds values, since kv_get gives a value whole.
const valueBytesMax = 64 << 10

type kvSetArguments struct {
	Key   string `json:"key" jsonschema:"the key, up to 800 bytes"`
	Value string `json:"value" jsonschema:"the value: any text, such as JSON, up to 64 KiB"`
	TTLMs int64  `json:"ttl_ms,omitempty" jsonschema:"milliseconds after which the key is gone; 0: it stays"`
}

type kvDone struct {
	Success bool   `json:"success"`
	Key     string `json:"key"`
	Message string `json:"message"`
}

func kvSet(s *space, tx *basalt.Tx, a kvSetArguments) (kvDone, error) {
	if err := checkName("a key", a.Key); err != nil {
		return kvDone{}, err
	}
	if len(a.Value) > valueBytesMax {
		return kvDone{}, refuse("the value has %d bytes, and a value has up to %d: divide it among several keys", len(a.Value), valueBytesMax)
	}
	if a.TTLMs < 0 || a.TTLMs > 1<<50 {
		return kvDone{}, refuse("ttl_ms is %d, and must be from 0 to 2^50", a.TTLMs)
	}
	s.pending.written = true
	options := basalt.WriteOptions{TTL: time.Duration(min(a.TTLMs, 1<<43)) * time.Millisecond}
	return kvDone{true, a.Key, "the value is kept"}, tx.PutIn(s.values, []byte(a.Key), []byte(a.Value), options)
}

type kvKey struct {
	Key string `json:"key" jsonschema:"the key"`
}

type kvValue struct {
	Found bool    `json:"found"`
	Key   string  `json:"key"`
	Value *string `json:"value" jsonschema:"null: there is no such key"`
}

func (s *space) value(key string) (*string, error) {
	if s == nil || key == "" {
		return nil, nil
	}
	bytes, found, err := s.values.Get([]byte(key))
	if err != nil || !found {
		return nil, err
	}
	value := string(bytes)
	return &value, nil
}

func kvGet(_ *Memory, s *space, a kvKey) (kvValue, error) {
	value, err := s.value(a.Key)
	return kvValue{value != nil, a.Key, value}, err
}

func kvDelete(s *space, tx *basalt.Tx, a kvKey) (kvDone, error) {
	absent := kvDone{false, a.Key, "there is no such key"}
	if s == nil || a.Key == "" {
		return absent, nil
	}
	_, found, err := tx.GetFrom(s.values, []byte(a.Key))
	if err != nil || !found {
		return absent, err
	}
	return kvDone{true, a.Key, "the key is deleted"}, tx.DeleteIn(s.values, []byte(a.Key))
}

type kvScanArguments struct {
	Prefix string `json:"prefix,omitempty" jsonschema:"only keys that begin with it"`
	Limits
}

type kvPair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type kvScanned struct {
	Pairs []kvPair `json:"pairs" jsonschema:"in the order of keys"`
	Rest
}

// kvScan gives pairs in order. The cursor is the key where the next page begins.
func kvScan(_ *Memory, s *space, a kvScanArguments) (kvScanned, error) {
	result := kvScanned{Pairs: []kvPair{}}
	if s == nil {
		return result, nil
	}
	limit, budget := a.limit(100, 1000), a.budget()
	scan := s.values.Scan(basalt.Range{Lower: []byte(max(a.Prefix, a.Cursor))})
	for key, value := range scan.All() {
		pair := kvPair{string(key), string(value)}
		if !strings.HasPrefix(pair.Key, a.Prefix) {
			break
		}
		if len(result.Pairs) == limit || (!budget.take(pair) && budget.any) {
			result.NextCursor = pair.Key
			result.LeftOut = "more pairs: go on with next_cursor"
			break
		}
		if !budget.any {
			pair.Value = cut(pair.Value, budget.left*bytesPerToken-len(pair.Key))
			result.LeftOut = fmt.Sprintf("a part of the value of %q: kv_get gives it whole", cut(pair.Key, 80))
			budget.any = true
		}
		result.Pairs = append(result.Pairs, pair)
	}
	return result, scan.Err()
}

func kvTools() []tool {
	return []tool{
		{name: "kv_set", title: "Set Value", description: "Keeps a value under a key, for good or for a time.",
			hints: hints{destructive: true, idempotent: true},
			input: schemaOf[kvSetArguments](), output: schemaOf[kvDone](), operation: changeOperation(kvSet)},
		readTool("kv_get", "Get Value", "Gives the value of a key.", kvGet),
		{name: "kv_delete", title: "Delete Key", description: "Deletes a key with its value.",
			hints: hints{destructive: true, idempotent: true},
			input: schemaOf[kvKey](), output: schemaOf[kvDone](), operation: removal(kvDelete)},
		readTool("kv_scan", "Scan Keys", "Gives keys with their values in order, a page at a time.", kvScan),
	}
}
