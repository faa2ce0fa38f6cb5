package main

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"basalt"
)

// space is a set of memories that no call for another space sees. A source is what a text came from, and its key in
// `sources` is also its name in the corpus:
//
//	entity/NAME    an entity: its type and observations
//	note/DIGEST    a text that was remembered and is about no entity
//	doc/SOURCE     a document that was ingested
//	name/NAME      a name that relations have and that is no entity; without a text
//
// The value is the time when it was last changed, milliseconds since 1970 in 8 bytes, the bytes of its text in 8 bytes,
// and then the lower-case text of an entity, which search_nodes looks through, or a title. Numbers are big-endian.
//
// In the graph an entity is a node with the label "Entity". A relation may name what is no entity yet: that is a node
// without a label. A relation holds from when it was made until another replaces it. Then its edge goes on as one with
// a discriminator and an end (valid_to), so that the edge without one is always the present relation.
type space struct {
	memory  *Memory
	name    string
	sources *basalt.Keyspace
	texts   *basalt.Keyspace
	values  *basalt.Keyspace
	graph   *basalt.Graph
	corpus  *basalt.Corpus
	counts  atomic.Pointer[counts]  // as the last change has left them
	catalog atomic.Pointer[catalog] // nil: not in memory

	// Memory.mu guards these.
	pending         pending // of the change under way
	catalogTooLarge bool
}

const (
	entityPrefix = "entity/"
	notePrefix   = "note/"
	docPrefix    = "doc/"
	namePrefix   = "name/"

	metadataPrefix = "metadata/" // in texts

	// A name is a part of keys and of sources.
	nameBytesMax = 800
)

// Entity is what the reference memory server calls one.
type Entity struct {
	Name         string   `json:"name" jsonschema:"The name of the entity"`
	EntityType   string   `json:"entityType" jsonschema:"The type of the entity"`
	Observations []string `json:"observations" jsonschema:"An array of observation contents associated with the entity"`
}

// Relation is a directed edge between two entities.
type Relation struct {
	From         string `json:"from" jsonschema:"The name of the entity where the relation starts"`
	To           string `json:"to" jsonschema:"The name of the entity where the relation ends"`
	RelationType string `json:"relationType" jsonschema:"The type of the relation"`
}

func (r Relation) edge() basalt.Edge {
	return basalt.Edge{From: r.From, Type: r.RelationType, To: r.To}
}

func checkName(what, name string) error {
	if name == "" || len(name) > nameBytesMax {
		return refuse("%s has 1 to %d bytes, and %.50q has %d: give a shorter name", what, nameBytesMax, name, len(name))
	}
	return nil
}

func now() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

// getEntity gives an entity; nil: there is none of this name.
func getEntity(g *basalt.Graph, name string) (*Entity, error) {
	node, err := g.GetNode(name)
	if err != nil || node == nil || len(node.Labels) == 0 {
		return nil, err
	}
	entity := &Entity{Name: name, Observations: []string{}}
	entity.EntityType, _ = node.Properties["type"].(string)
	observations, _ := node.Properties["observations"].([]any)
	for _, observation := range observations {
		if text, ok := observation.(string); ok {
			entity.Observations = append(entity.Observations, text)
		}
	}
	return entity, nil
}

// putEntity adds an entity, or replaces it: in the graph, in the corpus and among the sources.
func (s *space) putEntity(tx *basalt.Tx, entity Entity) error {
	if err := checkName("the name of an entity", entity.Name); err != nil {
		return err
	}
	err := s.graph.In(tx).PutNode(basalt.Node{ID: entity.Name, Labels: []string{"Entity"}, Properties: basalt.Properties{
		"type": entity.EntityType, "observations": append([]string{}, entity.Observations...)}})
	if err != nil {
		return err
	}
	if err := s.dropSource(tx, namePrefix+entity.Name); err != nil {
		return err
	}
	text := entity.EntityType + "\n" + strings.Join(entity.Observations, "\n")
	return s.putSource(tx, entityPrefix+entity.Name, entity.Name, text, strings.ToLower(entity.Name+"\x00"+text))
}

// putSource adds a text to the corpus, and its source with what is to be kept there.
func (s *space) putSource(tx *basalt.Tx, source, title, text, kept string) error {
	_, err := s.corpus.In(tx).Ingest(basalt.Document{Source: source, Title: title, Text: text})
	if err != nil {
		return err
	}
	return s.keepSource(tx, source, len(text), kept)
}

// keepSource writes a record of `sources`.
func (s *space) keepSource(tx *basalt.Tx, source string, size int, kept string) error {
	if err := s.pending.count(s, tx, source, 1); err != nil {
		return err
	}
	value := binary.BigEndian.AppendUint64(nil, uint64(now().UnixMilli()))
	value = binary.BigEndian.AppendUint64(value, uint64(size))
	return tx.PutIn(s.sources, []byte(source), append(value, kept...))
}

// dropSource deletes a record of `sources`, if there is one.
func (s *space) dropSource(tx *basalt.Tx, source string) error {
	if err := s.pending.count(s, tx, source, 0); err != nil {
		return err
	}
	return tx.DeleteIn(s.sources, []byte(source))
}

// removeSource removes a text, and tells whether it was there.
func (s *space) removeSource(tx *basalt.Tx, source string) (bool, error) {
	found, err := s.corpus.In(tx).Forget(source)
	if err != nil {
		return false, err
	}
	for _, key := range []string{source, metadataPrefix + source} {
		if err := tx.DeleteIn(s.texts, []byte(key)); err != nil {
			return false, err
		}
	}
	return found, s.dropSource(tx, source)
}

// removeEntity removes an entity with its relations, and tells whether it was there.
func (s *space) removeEntity(tx *basalt.Tx, name string) (bool, error) {
	if name == "" || len(name) > nameBytesMax {
		return false, nil
	}
	relations, err := s.countRelations(tx, name)
	if err != nil {
		return false, err
	}
	if _, err := s.graph.In(tx).RemoveNode(name); err != nil {
		return false, err
	}
	s.pending.counts.relations -= relations
	if err := s.dropSource(tx, namePrefix+name); err != nil {
		return false, err
	}
	return s.removeSource(tx, entityPrefix+name)
}

// putRelation adds a relation, and tells whether it was new. Ends that are absent become nodes, without being entities.
func (s *space) putRelation(tx *basalt.Tx, relation Relation) (created bool, err error) {
	g := s.graph.In(tx)
	for _, name := range []string{relation.From, relation.To, relation.RelationType} {
		if err := checkName("a name in a relation", name); err != nil {
			return false, err
		}
	}
	if found, err := g.GetEdge(relation.edge()); err != nil || found != nil {
		return false, err
	}
	for _, end := range []string{relation.From, relation.To} {
		node, err := g.GetNode(end)
		if err == nil && node == nil {
			err = errors.Join(g.PutNode(basalt.Node{ID: end}), s.keepSource(tx, namePrefix+end, 0, ""))
		}
		if err != nil {
			return false, err
		}
	}
	s.pending.counts.relations++
	return true, g.PutEdge(relation.edge(), basalt.EdgeContent{Weight: 1, ValidFrom: now()})
}

// removeRelation removes an edge, if there is one.
func (s *space) removeRelation(tx *basalt.Tx, edge basalt.Edge) error {
	found, err := s.graph.In(tx).RemoveEdge(edge)
	if found && err == nil {
		s.pending.counts.relations--
	}
	return err
}

// endRelations ends the relations of a type that leave an entity, except the one to `keep`. They stay as history.
func (s *space) endRelations(tx *basalt.Tx, from, relationType, keep string) (ended int, err error) {
	g := s.graph.In(tx)
	end := now()
	for cursor := ""; ; {
		page, next, err := g.Neighbors(from, basalt.EdgeFilter{Types: []string{relationType}}, 1000, cursor)
		if err != nil {
			return ended, err
		}
		for _, neighbor := range page {
			edge := basalt.Edge{From: from, Type: relationType, To: neighbor.ID}
			if neighbor.Discriminator != "" || neighbor.ID == keep {
				continue
			}
			content, err := g.GetEdge(edge)
			if err != nil || content == nil {
				return ended, err
			}
			if err := s.removeRelation(tx, edge); err != nil {
				return ended, err
			}
			content.ValidTo = end
			edge.Discriminator = "until " + end.UTC().Format("2006-01-02T15:04:05.000Z")
			// One that was made and ended within this millisecond is there already.
			if err := s.removeRelation(tx, edge); err != nil {
				return ended, err
			}
			if err := g.PutEdge(edge, *content); err != nil {
				return ended, err
			}
			s.pending.counts.relations++
			ended++
		}
		if cursor = next; next == "" {
			return ended, nil
		}
	}
}

// source is a record of `sources`.
type source struct {
	name []byte
	time time.Time
	size int // Of its text, in bytes.
	text []byte
}

func toSource(key, value []byte) source {
	s := source{name: key}
	if len(value) >= 16 {
		s.time = time.UnixMilli(int64(binary.BigEndian.Uint64(value)))
		s.size = int(binary.BigEndian.Uint64(value[8:]))
		s.text = value[16:]
	}
	return s
}

func (s *space) getSource(name string) (*source, error) {
	value, found, err := s.sources.Get([]byte(name))
	if err != nil || !found {
		return nil, err
	}
	record := toSource([]byte(name), value)
	return &record, nil
}
