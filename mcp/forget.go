package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"basalt"
)

type forgetArguments struct {
	Sources    []string       `json:"sources,omitempty" jsonschema:"sources as recall shows them: entity/NAME, note/DIGEST, doc/SOURCE"`
	Facts      []factArgument `json:"facts,omitempty" jsonschema:"relations, with their history"`
	Before     string         `json:"before,omitempty" jsonschema:"all sources that were last changed before this time (RFC 3339)"`
	Everything bool           `json:"everything,omitempty" jsonschema:"true: all sources of the space"`
	Confirm    string         `json:"confirm,omitempty" jsonschema:"the confirm of the answer that showed what would be removed"`
	Limits
}

type forgetResult struct {
	Removed bool     `json:"removed" jsonschema:"false: nothing was removed; call again with confirm to do it"`
	Sources []string `json:"sources" jsonschema:"what is, or would be, removed; an entity with its observations and relations"`
	Facts   []Fact   `json:"facts"`
	Count   int      `json:"count" jsonschema:"of all that is, or would be, removed by one call"`
	Confirm string   `json:"confirm,omitempty" jsonschema:"give it with the same arguments to remove exactly this"`
	Rest
}

// forgetCountMax and forgetBytesMax, of texts, keep a call within one transaction.
const (
	forgetCountMax = 1000
	forgetBytesMax = documentBytesMax
)

// forget shows what would be removed, and removes it when it gets the confirmation for exactly that.
func forget(s *space, tx *basalt.Tx, a forgetArguments) (forgetResult, error) {
	result := forgetResult{Sources: []string{}, Facts: []Fact{}}
	before, err := a.check()
	if err != nil || s == nil {
		return result, err
	}
	sources, more, err := s.chosen(a, before)
	if err != nil {
		return result, err
	}
	edges, facts, err := s.chosenEdges(tx, a.Facts)
	if err != nil {
		return result, err
	}
	result.Count = len(sources) + len(facts)
	digest := sha256.New()
	for _, source := range sources {
		fmt.Fprintf(digest, "%q\n", source)
	}
	for _, edge := range edges {
		fmt.Fprintf(digest, "%q\n", edge)
	}
	confirm := hex.EncodeToString(digest.Sum(nil)[:8])
	if result.Count == 0 {
		return result, nil
	}
	result.Removed = a.Confirm == confirm
	if result.Removed {
		if err := s.remove(tx, sources, edges); err != nil {
			return result, err
		}
	} else {
		result.Confirm = confirm
		if a.Confirm != "" {
			result.LeftOut = "the confirmation is not for this: look at what would be removed now; "
		}
	}
	err = result.show(sources, facts, a.Limits)
	if more {
		result.LeftOut += "this is as much as a call removes: call again for the rest"
	}
	result.LeftOut = strings.TrimSuffix(result.LeftOut, "; ")
	return result, err
}

// show fills in what fits of the names.
func (r *forgetResult) show(sources []string, facts []Fact, limits Limits) error {
	offset, err := parseOffset(limits.Cursor)
	if err != nil {
		return err
	}
	limit, budget := limits.limit(50, forgetCountMax), limits.budget()
	all := len(sources) + len(facts)
	for i := offset; i < all; i++ {
		var name any
		if i < len(sources) {
			name = sources[i]
		} else {
			name = facts[i-len(sources)]
		}
		if i == offset+limit || (!budget.take(name) && i > offset) {
			r.LeftOut += fmt.Sprintf("%d of %d are not shown; ", all-(i-offset), all)
			if !r.Removed {
				r.NextCursor = fmt.Sprint(i)
			}
			return nil
		}
		if i < len(sources) {
			r.Sources = append(r.Sources, sources[i])
		} else {
			r.Facts = append(r.Facts, facts[i-len(sources)])
		}
	}
	return nil
}

// check refuses arguments that name nothing or too much, and gives the time of Before.
func (a forgetArguments) check() (before time.Time, err error) {
	if len(a.Sources) > forgetCountMax || len(a.Facts) > forgetCountMax {
		return before, refuse("a call removes up to %d: give fewer", forgetCountMax)
	}
	if len(a.Sources) == 0 && len(a.Facts) == 0 && a.Before == "" && !a.Everything {
		return before, refuse("nothing is named to be forgotten: give sources, facts, before or everything")
	}
	return parseTime(a.Before, time.Time{})
}

// chosen gives the sources that the arguments name, in order; more: there are more than one call removes.
func (s *space) chosen(a forgetArguments, before time.Time) (sources []string, more bool, err error) {
	seen, bytes := map[string]bool{}, 0
	// take adds a source, and tells whether there was room.
	take := func(record source) bool {
		name := string(record.name)
		if seen[name] {
			return true
		}
		if len(sources) >= forgetCountMax || (len(sources) > 0 && bytes+record.size > forgetBytesMax) {
			return false
		}
		seen[name] = true
		bytes += record.size
		sources = append(sources, name)
		return true
	}
	for _, name := range a.Sources {
		record, err := s.getSource(name)
		if err != nil {
			return nil, false, err
		}
		if record != nil && !take(*record) {
			return sources, true, nil
		}
	}
	if !a.Everything && before.IsZero() {
		return sources, false, nil
	}
	c, err := s.memory.loadCatalog(s)
	if err != nil {
		return nil, false, err
	}
	err = s.walk(c, "", "", nil, func(record source) bool {
		more = (a.Everything || record.time.Before(before)) && !take(record)
		return !more
	})
	return sources, more, err
}

// chosenEdges gives the edges of relations, with those that are history.
func (s *space) chosenEdges(tx *basalt.Tx, facts []factArgument) (edges []basalt.Edge, found []Fact, err error) {
	for _, fact := range facts {
		known := false
		for cursor := ""; ; {
			page, next, err := s.graph.In(tx).Neighbors(fact.From, basalt.EdgeFilter{Types: []string{fact.Relation}}, 1000, cursor)
			if err != nil {
				return nil, nil, err
			}
			for _, neighbor := range page {
				if neighbor.ID == fact.To {
					known = true
					edges = append(edges, basalt.Edge{
						From: fact.From, Type: fact.Relation, To: fact.To, Discriminator: neighbor.Discriminator})
				}
			}
			if cursor = next; next == "" {
				break
			}
		}
		if known {
			found = append(found, Fact{fact.From, fact.Relation, fact.To})
		}
	}
	return edges, found, nil
}

func (s *space) remove(tx *basalt.Tx, sources []string, edges []basalt.Edge) error {
	for _, edge := range edges {
		if err := s.removeRelation(tx, edge); err != nil {
			return err
		}
	}
	for _, source := range sources {
		var err error
		if name, ok := strings.CutPrefix(source, entityPrefix); ok {
			_, err = s.removeEntity(tx, name)
		} else if name, ok := strings.CutPrefix(source, namePrefix); ok {
			_, err = s.removeEntity(tx, name)
		} else {
			_, err = s.removeSource(tx, source)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
