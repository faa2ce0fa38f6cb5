package basalt

// #include "bridge.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Document is a text to be found.
type Document struct {
	Source string // Its name, up to 900 bytes. A document with the same source replaces it.
	Title  string
	Text   string // UTF-8.
}

// Ingested says what became of a document.
type Ingested struct {
	Passages uint64
	Entities uint64 // That the passages name; new and known ones.
}

// ScoreParts says why a passage was found.
type ScoreParts struct {
	BM25     *float64 `json:"bm25"` // nil: not among the hits of the text index.
	Hybrid   float64  `json:"hybrid"`
	Links    float64  `json:"links"`
	PageRank float64  `json:"page_rank"` // What came to the passage over links.
}

// Passage is a part of a document that was found.
type Passage struct {
	Source   string     `json:"source"`
	Title    string     `json:"title"`
	Text     string     `json:"text"`
	Begin    int        `json:"begin"` // In the document's text, in bytes.
	End      int        `json:"end"`
	Score    float64    `json:"score"`
	Parts    ScoreParts `json:"parts"`
	Tokens   int        `json:"tokens"`
	Evidence []string   `json:"evidence"` // With RetrieveOptions.Explain: how links led to it.
}

// CorpusOptions says how a corpus is opened.
type CorpusOptions struct {
	MustExist bool   // A corpus that is absent is NotFound, not made.
	Stemmer   string // For example "english". "": the one that it was made with; none for a new one.
}

// RetrieveOptions says how much is wanted.
type RetrieveOptions struct {
	K         int  // Passages; 0: 10.
	MaxTokens int  // Of all of them, 4 bytes each; 0: a million.
	Explain   bool // With Passage.Evidence.
}

// Corpus is a set of documents whose passages are searched by words and links.
type Corpus struct {
	owner *corpusHandle
	tx    *Tx
}

type corpusHandle struct{ c *C.basalt_corpus }

// OpenCorpus opens a corpus. It is made where it is absent.
func (s *Store) OpenCorpus(name string, options CorpusOptions) (*Corpus, error) {
	owner := &corpusHandle{}
	p, n := bytesOf([]byte(name))
	var stemmer *C.char
	if options.Stemmer != "" {
		stemmer = C.CString(options.Stemmer)
		defer C.free(unsafe.Pointer(stemmer))
	}
	r := results.Get().(*C.bridge_result)
	code := C.bridge_corpus_open(s.h.c, p, n, stemmer, C.bool(options.MustExist), &owner.c, r)
	runtime.KeepAlive(s)
	if err := finish(code, r); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(owner, func(c *corpusHandle) { C.basalt_corpus_free(c.c) })
	return &Corpus{owner: owner}, nil
}

// In gives the corpus for changes that take effect when a transaction commits. Finish is to be called after it.
func (c *Corpus) In(tx *Tx) *Corpus { return &Corpus{c.owner, tx} }

func (c *Corpus) transaction() *C.basalt_transaction {
	if c.tx == nil {
		return nil
	}
	return c.tx.c
}

// Ingest adds a document, or replaces it.
func (c *Corpus) Ingest(document Document) (Ingested, error) {
	r := results.Get().(*C.bridge_result)
	s, sn := bytesOf([]byte(document.Source))
	t, tn := bytesOf([]byte(document.Title))
	x, xn := bytesOf([]byte(document.Text))
	var ingested C.basalt_ingested
	code := C.bridge_corpus_ingest(c.owner.c, c.transaction(), s, sn, t, tn, x, xn, &ingested, r)
	runtime.KeepAlive(c)
	return Ingested{uint64(ingested.passages), uint64(ingested.entities)}, finish(code, r)
}

// Forget removes a document, and tells whether it was there.
func (c *Corpus) Forget(source string) (found bool, err error) {
	r := results.Get().(*C.bridge_result)
	s, n := bytesOf([]byte(source))
	code := C.basalt_corpus_forget(c.owner.c, c.transaction(), s, n, &r.found, &r.error)
	runtime.KeepAlive(c)
	found = bool(r.found) && code == 0
	return found, finish(code, r)
}

// Finish does what transactions have left to do: it packs postings, and removes records of removed nodes.
func (c *Corpus) Finish() error {
	r := results.Get().(*C.bridge_result)
	code := C.basalt_corpus_finish(c.owner.c, &r.error)
	runtime.KeepAlive(c)
	return finish(code, r)
}

// Retrieve gives the passages that fit a query best. truncated: a limit cut some off.
func (c *Corpus) Retrieve(query string, options RetrieveOptions) (passages []Passage, truncated bool, err error) {
	o := C.basalt_retrieve_options{
		struct_size: C.sizeof_basalt_retrieve_options,
		k:           C.size_t(max(options.K, 0)),
		max_tokens:  C.uint64_t(max(options.MaxTokens, 0)),
		explain:     C.bool(options.Explain),
	}
	r := results.Get().(*C.bridge_result)
	q, n := bytesOf([]byte(query))
	text, err := finishText(C.basalt_corpus_retrieve(c.owner.c, (*C.char)(q), n, &o, &r.large, &r.error), r)
	runtime.KeepAlive(c)
	if err != nil {
		return nil, false, err
	}
	var answer struct {
		Passages  []Passage `json:"passages"`
		Truncated bool      `json:"truncated"`
	}
	err = decodeJSON(text, &answer)
	return answer.Passages, answer.Truncated, err
}
