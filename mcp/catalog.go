package main

import (
	"bytes"
	"slices"
	"sort"

	"basalt"
)

// catalog is what `sources` of a space holds, in memory, in the order of names. Searches for a part of a text look
// through all of it, which takes 10 times as long in the database. The records lie one after the other in `text`, each
// a name and a value; names[i] and ends[i] are where the name and the value of record i end. `changed` has the records
// that were written since, in order; they replace those of `text`.
//
// A catalog never changes, so that reads need no lock: a change makes another one, which shares the text until more
// than changedMax records are different. The first search of a space loads its catalog. The catalogs of a database take
// up to catalogBytesMax together; the spaces that do not fit are searched in the database.
type catalog struct {
	text    []byte
	names   []uint32
	ends    []uint32
	often   [256]uint32 // how often each byte occurs in the text
	changed []record
}

// record is one of `sources`. value is nil: it was deleted.
type record struct{ name, value []byte }

const (
	catalogBytesMax = 128 << 20
	changedMax      = 1000
)

// loadCatalog reads all records; nil: they do not fit.
func loadCatalog(sources *basalt.Keyspace) (*catalog, error) {
	c := &catalog{}
	scan := sources.Scan(basalt.Range{})
	for name, value := range scan.All() {
		if !c.append(name, value) {
			return nil, nil
		}
	}
	return c, scan.Err()
}

// append adds a record behind all others, and tells whether it fits.
func (c *catalog) append(name, value []byte) bool {
	if c.size()+len(name)+len(value)+8 > catalogBytesMax {
		return false
	}
	begin := len(c.text)
	c.text = append(append(c.text, name...), value...)
	for _, b := range c.text[begin:] {
		c.often[b]++
	}
	c.names = append(c.names, uint32(len(c.text)-len(value)))
	c.ends = append(c.ends, uint32(len(c.text)))
	return true
}

// size is the memory of the catalog in bytes, without `changed`.
func (c *catalog) size() int { return len(c.text) + 8*len(c.ends) }

func (c *catalog) begin(i int) uint32 {
	if i == 0 {
		return 0
	}
	return c.ends[i-1]
}

func (c *catalog) record(i int) record {
	return record{c.text[c.begin(i):c.names[i]], c.text[c.names[i]:c.ends[i]]}
}

// next gives the first record from i on that may contain `part`.
func (c *catalog) next(i int, part []byte) int {
	if i >= len(c.ends) || len(part) == 0 {
		return i
	}
	at := c.index(int(c.begin(i)), part)
	return sort.Search(len(c.ends), func(i int) bool { return int(c.ends[i]) > at })
}

// index gives where `part` is in the text, from a position on; the end of the text: nowhere. It looks for the byte of
// the part that is the rarest in this text: bytes.Index looks for the first one, and is 40 times slower when that is a
// frequent one.
func (c *catalog) index(from int, part []byte) int {
	rarest := 0
	for i, b := range part {
		if c.often[b] < c.often[part[rarest]] {
			rarest = i
		}
	}
	for at := from + rarest; at < len(c.text); at++ {
		next := bytes.IndexByte(c.text[at:], part[rarest])
		if next < 0 {
			break
		}
		at += next
		if bytes.HasPrefix(c.text[at-rarest:], part) {
			return at - rarest
		}
	}
	return len(c.text)
}

// with gives a catalog with these records changed; nil: it does not fit.
func (c *catalog) with(changes []record) *catalog {
	next := *c
	next.changed = slices.Clone(c.changed)
	for _, change := range changes {
		i, found := slices.BinarySearchFunc(next.changed, change.name, compareName)
		if !found {
			next.changed = slices.Insert(next.changed, i, change)
		}
		next.changed[i] = change
	}
	if len(next.changed) <= changedMax {
		return &next
	}
	whole, fits := &catalog{text: make([]byte, 0, len(c.text)+len(c.text)/8)}, true
	next.each("", "", nil, func(r record) bool {
		fits = whole.append(r.name, r.value)
		return fits
	})
	if !fits {
		return nil
	}
	return whole
}

func compareName(r record, name []byte) int { return bytes.Compare(r.name, name) }

// each visits the records from one name up to another ("": the end), in order, until `visit` returns false. It may
// leave out records that do not contain `part`.
func (c *catalog) each(from, to string, part []byte, visit func(record) bool) {
	first, _ := slices.BinarySearchFunc(c.changed, []byte(from), compareName)
	changed := c.changed[first:]
	i := sort.Search(len(c.ends), func(i int) bool { return string(c.record(i).name) >= from })
	for i = c.next(i, part); i < len(c.ends) || len(changed) > 0; {
		order := 1 // of the next changed record to the next one of the text
		if i == len(c.ends) {
			order = -1
		} else if len(changed) > 0 {
			order = bytes.Compare(changed[0].name, c.record(i).name)
		}
		var r record
		if order > 0 {
			r = c.record(i)
		} else {
			r, changed = changed[0], changed[1:]
		}
		if order >= 0 {
			i = c.next(i+1, part)
		}
		if to != "" && string(r.name) >= to {
			return
		}
		if r.value != nil && !visit(r) {
			return
		}
	}
}

// catalogFor gives the catalog of a space; nil: it is not in memory. A read does not wait for a change that is under
// way to load it.
func (m *Memory) catalogFor(s *space) (*catalog, error) {
	if c := s.catalog.Load(); c != nil {
		return c, nil
	}
	if !m.mu.TryLock() {
		return nil, nil
	}
	defer m.mu.Unlock()
	return m.loadCatalog(s)
}

// loadCatalog is catalogFor for a change, which has m.mu.
func (m *Memory) loadCatalog(s *space) (*catalog, error) {
	if c := s.catalog.Load(); c != nil || s.catalogTooLarge {
		return c, nil
	}
	c, err := loadCatalog(s.sources)
	if err != nil {
		return nil, err
	}
	m.keepCatalog(s, c)
	return c, nil
}

// keepCatalog keeps a catalog in memory (nil: none, it is too large), and drops those of other spaces if they do not
// fit together. The caller has m.mu.
func (m *Memory) keepCatalog(s *space, c *catalog) {
	s.catalog.Store(c)
	s.catalogTooLarge = c == nil
	m.opened.Lock()
	defer m.opened.Unlock()
	bytes := 0
	for _, other := range m.spaces {
		if kept := other.catalog.Load(); kept != nil {
			bytes += kept.size()
		}
	}
	if bytes <= catalogBytesMax {
		return
	}
	for _, other := range m.spaces {
		if other != s {
			other.catalog.Store(nil)
		}
	}
}

// updateCatalog takes over what the change that was just committed has written.
func (m *Memory) updateCatalog(s *space) {
	c := s.catalog.Load()
	if c == nil || len(s.pending.sources) == 0 {
		return
	}
	if len(s.pending.sources) > changedMax {
		s.catalog.Store(nil) // The next search loads it, which costs less.
		return
	}
	var changes []record
	for _, name := range s.pending.sources {
		value, found, err := s.sources.Get([]byte(name))
		if err != nil {
			s.catalog.Store(nil)
			return
		}
		if !found {
			value = nil
		}
		changes = append(changes, record{[]byte(name), value})
	}
	m.keepCatalog(s, c.with(changes))
}

// walk visits the records of `sources` from one name up to another, in order, until `visit` returns false: in a catalog,
// or, if that is nil, in the database. It may leave out records that do not contain `part`.
func (s *space) walk(c *catalog, from, to string, part []byte, visit func(source) bool) error {
	if c != nil {
		c.each(from, to, part, func(r record) bool { return visit(toSource(r.name, r.value)) })
		return nil
	}
	bounds := basalt.Range{Lower: []byte(from)}
	if to != "" {
		bounds.Upper = []byte(to)
	}
	scan := s.sources.Scan(bounds)
	for name, value := range scan.All() {
		if !visit(toSource(name, value)) {
			break
		}
	}
	return scan.Err()
}
