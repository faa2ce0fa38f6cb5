package main

import (
	"bytes"
	"encoding/json"

	"basalt"
)

// operation is what a tool does to a memory: a read, or a change, which is a part of a transaction. A read of a space
// that does not exist gets nil. A change creates the space, except one that only removes: that gets nil too, and no
// transaction.
type operation struct {
	read    func(m *Memory, s *space, arguments []byte) (any, error)
	change  func(s *space, tx *basalt.Tx, arguments []byte) (any, error)
	removes bool
}

// operations has all tools of all profiles, by name: the process that has the database answers for all others.
var operations = map[string]operation{}

func decode[A any](arguments []byte) (A, error) {
	var a A
	if len(bytes.TrimSpace(arguments)) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return a, refuse("the arguments do not fit the tool: %v", err)
	}
	return a, nil
}

func readOperation[A, R any](fn func(m *Memory, s *space, a A) (R, error)) operation {
	return operation{read: func(m *Memory, s *space, arguments []byte) (any, error) {
		a, err := decode[A](arguments)
		if err != nil {
			return nil, err
		}
		return fn(m, s, a)
	}}
}

func changeOperation[A, R any](fn func(s *space, tx *basalt.Tx, a A) (R, error)) operation {
	return operation{change: func(s *space, tx *basalt.Tx, arguments []byte) (any, error) {
		a, err := decode[A](arguments)
		if err != nil {
			return nil, err
		}
		return fn(s, tx, a)
	}}
}

func removal[A, R any](fn func(s *space, tx *basalt.Tx, a A) (R, error)) operation {
	operation := changeOperation(fn)
	operation.removes = true
	return operation
}
