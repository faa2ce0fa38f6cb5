package main

import (
	"encoding/binary"
	"strings"

	"basalt"
)

// counts says how much a space holds. Each change writes them in its transaction, so that they are always true. In the
// registry they are four numbers of 8 bytes, big-endian, in the order of the members. An empty record is that of a
// space that was last changed before counts were kept: opening it counts once.
type counts struct{ entities, notes, documents, relations uint64 }

func (c counts) encode() []byte {
	var record []byte
	for _, n := range []uint64{c.entities, c.notes, c.documents, c.relations} {
		record = binary.BigEndian.AppendUint64(record, n)
	}
	return record
}

func decodeCounts(record []byte) counts {
	var n [4]uint64
	for i := range n {
		n[i] = binary.BigEndian.Uint64(record[8*i:])
	}
	return counts{n[0], n[1], n[2], n[3]}
}

// of gives the count to which a source belongs; nil: none.
func (c *counts) of(source string) *uint64 {
	switch {
	case strings.HasPrefix(source, entityPrefix):
		return &c.entities
	case strings.HasPrefix(source, notePrefix):
		return &c.notes
	case strings.HasPrefix(source, docPrefix):
		return &c.documents
	}
	return nil
}

// pending is what a change has done so far: counts as they will be, the sources that it has written or deleted, and
// whether it has written something else.
type pending struct {
	counts  counts
	sources []string
	written bool
}

// count notes that a source is to be there (1) or not (0).
func (p *pending) count(s *space, tx *basalt.Tx, source string, after uint64) error {
	_, found, err := tx.GetFrom(s.sources, []byte(source))
	if err != nil || (!found && after == 0) {
		return err
	}
	p.sources = append(p.sources, source)
	if count := p.counts.of(source); count != nil {
		*count += after
		if found {
			*count--
		}
	}
	return nil
}

// loadCounts reads the record of the registry, or counts where there is none.
func (s *space) loadCounts(record []byte) (counts, error) {
	if len(record) == 32 {
		return decodeCounts(record), nil
	}
	var held counts
	scan := s.sources.Scan(basalt.Range{})
	for key := range scan.All() {
		if count := held.of(string(key)); count != nil {
			*count++
		}
	}
	stats, err := s.graph.Stats()
	if err == nil {
		err = scan.Err()
	}
	held.relations = stats.Edges
	return held, err
}

// countRelations counts the edges of a node, those that are history included.
func (s *space) countRelations(tx *basalt.Tx, name string) (count uint64, err error) {
	for cursor := ""; ; {
		page, next, err := s.graph.In(tx).Neighbors(name, basalt.EdgeFilter{Direction: basalt.Both}, 1000, cursor)
		if err != nil {
			return 0, err
		}
		for _, neighbor := range page {
			if neighbor.ID != name || neighbor.Direction == "out" {
				count++ // An edge from a node to itself is seen from both ends.
			}
		}
		if cursor = next; next == "" {
			return count, nil
		}
	}
}
