package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"basalt"
)

// A database of memories. Its keyspaces, where SPACE is a space's name with all but letters, digits, "-" and "_" as
// %XX, so that no two names meet:
//
//	requests        the answer to each change that another process has sent, by the request's id; for ten minutes
//	spaces          what each space holds (counts.go), by its name
//	sources/SPACE   what there is to be found, by source (space.go)
//	texts/SPACE     the text of each document and the properties of each node, by source; metadata/SOURCE: what
//	                vector_insert has given with a document
//	values/SPACE    the values of kv_set, by key
//	graph/SPACE     a graph: entities and the relations between them
//	corpus/SPACE    a corpus: the texts of all sources
//
// A change is one transaction over all of these, the answer included: a change that is sent again gets the answer of
// the first time. Changes wait for each other (mu); reads do not wait.
type Memory struct {
	store    *basalt.Store
	requests *basalt.Keyspace
	registry *basalt.Keyspace
	path     string

	mu     sync.Mutex // of changes
	opened sync.Mutex // of spaces
	spaces map[string]*space
}

// Request is a call of a tool.
type Request struct {
	ID        string // Of a change that may be sent again. "": it will not be.
	Tool      string
	Space     string
	Arguments []byte // JSON.
}

// Reply is the answer: JSON, or why there is none, for the model to read.
type Reply struct {
	Result  []byte
	Failure string
}

// A refusal tells the model what to do differently.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, values ...any) error { return refusal(fmt.Sprintf(format, values...)) }

// spaceBytesMax keeps the names of keyspaces within their 200 bytes, with every byte escaped.
const spaceBytesMax = 60

// changeBytesMax is the memory of one change. The index of a text with many different words takes a multiple of it.
const changeBytesMax = 256 << 20

const answerKept = 10 * time.Minute

// OpenMemory opens a database. basalt.Busy: another process has it.
func OpenMemory(path string, durability basalt.Durability) (*Memory, error) {
	store, err := basalt.Open(path, basalt.Options{Durability: durability, MemoryBudget: 256 << 20})
	if err != nil {
		return nil, err
	}
	m := &Memory{store: store, path: path, spaces: map[string]*space{}}
	if m.requests, err = store.OpenKeyspace("requests"); err == nil {
		m.registry, err = store.OpenKeyspace("spaces")
	}
	if err != nil {
		store.Close()
		return nil, err
	}
	return m, nil
}

// Close lets go of the database.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store.Close()
}

// Call runs a tool.
func (m *Memory) Call(ctx context.Context, request Request) (Reply, error) {
	operation, ok := operations[request.Tool]
	if !ok {
		return Reply{Failure: fmt.Sprintf("there is no tool %q", request.Tool)}, nil
	}
	var result any
	var err error
	if operation.change != nil {
		return m.change(ctx, request, operation)
	}
	s, err := m.space(request.Space, false)
	if err == nil {
		result, err = operation.read(m, s, request.Arguments)
	}
	return replyOf(result, err)
}

func replyOf(result any, err error) (Reply, error) {
	var refused refusal
	if errors.As(err, &refused) {
		return Reply{Failure: string(refused)}, nil
	}
	var failed *basalt.Error
	if errors.As(err, &failed) && failed.SubCode == "BatchTooLarge" {
		return Reply{Failure: "this is too much for one call, and nothing was changed: divide it among several"}, nil
	}
	if err != nil {
		return Reply{}, err
	}
	text, err := json.Marshal(result)
	return Reply{Result: text}, err
}

func (m *Memory) change(ctx context.Context, request Request, operation operation) (Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if request.ID != "" {
		answer, found, err := m.requests.Get([]byte(request.ID))
		if err != nil || found {
			return Reply{Result: answer}, err
		}
	}
	s, err := m.space(request.Space, !operation.removes)
	if err != nil {
		return replyOf(nil, err)
	}
	if s == nil {
		return replyOf(operation.change(nil, nil, request.Arguments))
	}
	var reply Reply
	for {
		reply, err = m.attempt(s, request, operation)
		if !errors.Is(err, basalt.Aborted) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return replyOf(nil, err)
	}
	// What follows changes no answer: the change is there.
	if err := errors.Join(s.corpus.Finish(), s.graph.FinishRemovals()); err != nil {
		logf("after a change of the space %q: %v", request.Space, err)
	}
	return reply, nil
}

// attempt makes a change and commits it with its answer. Aborted: it is to be made again.
func (m *Memory) attempt(s *space, request Request, operation operation) (reply Reply, err error) {
	tx, err := m.store.Begin(basalt.TxOptions{MemoryLimit: changeBytesMax})
	if err != nil {
		return reply, err
	}
	defer tx.Rollback()
	before := *s.counts.Load()
	s.pending = pending{counts: before}
	result, err := operation.change(s, tx, request.Arguments)
	if err != nil {
		return reply, err
	}
	if s.pending.written || len(s.pending.sources) > 0 || s.pending.counts != before {
		if err := tx.PutIn(m.registry, []byte(s.name), s.pending.counts.encode()); err != nil {
			return reply, err
		}
	}
	if reply.Result, err = json.Marshal(result); err != nil {
		return reply, err
	}
	if request.ID != "" {
		err = tx.PutIn(m.requests, []byte(request.ID), reply.Result, basalt.WriteOptions{TTL: answerKept})
		if err != nil {
			return reply, err
		}
	}
	if err := tx.Commit(); err != nil {
		return reply, err
	}
	after := s.pending.counts
	s.counts.Store(&after)
	m.updateCatalog(s)
	return reply, nil
}

// space opens a space. nil: there is none of this name, and create is false. A space that is opened to be created has a
// name in the registry once a change has put something there.
func (m *Memory) space(name string, create bool) (*space, error) {
	if name == "" || len(name) > spaceBytesMax {
		return nil, refuse("a space has a name of 1 to %d bytes, and %q has %d", spaceBytesMax, name, len(name))
	}
	m.opened.Lock()
	defer m.opened.Unlock()
	if s := m.spaces[name]; s != nil {
		return s, nil
	}
	record, known, err := m.registry.Get([]byte(name))
	if err != nil || (!known && !create) {
		return nil, err
	}
	s := &space{name: name, memory: m}
	escaped := escape(name)
	if s.sources, err = m.store.OpenKeyspace("sources/" + escaped); err != nil {
		return nil, err
	}
	if s.texts, err = m.store.OpenKeyspace("texts/" + escaped); err != nil {
		return nil, err
	}
	if s.values, err = m.store.OpenKeyspace("values/" + escaped); err != nil {
		return nil, err
	}
	if s.graph, err = m.store.OpenGraph("graph/"+escaped, false); err != nil {
		return nil, err
	}
	if s.corpus, err = openCorpus(m.store, "corpus/"+escaped); err != nil {
		return nil, err
	}
	held, err := s.loadCounts(record)
	if err != nil {
		return nil, err
	}
	s.counts.Store(&held)
	m.spaces[name] = s
	return s, nil
}

// openCorpus opens a corpus. A new one finds English words in all their forms, if the library was built with that.
func openCorpus(store *basalt.Store, name string) (*basalt.Corpus, error) {
	corpus, err := store.OpenCorpus(name, basalt.CorpusOptions{MustExist: true})
	if errors.Is(err, basalt.NotFound) {
		corpus, err = store.OpenCorpus(name, basalt.CorpusOptions{Stemmer: "english"})
	}
	if errors.Is(err, basalt.InvalidArgument) {
		corpus, err = store.OpenCorpus(name, basalt.CorpusOptions{})
	}
	return corpus, err
}

// spaceNames gives up to limit names, in order.
func (m *Memory) spaceNames(limit int) ([]string, error) {
	names := []string{}
	scan := m.registry.Scan(basalt.Range{})
	for name := range scan.All() {
		if len(names) == limit {
			break
		}
		names = append(names, string(name))
	}
	return names, scan.Err()
}

func escape(name string) string {
	var escaped strings.Builder
	for _, b := range []byte(name) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_' {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}
