package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"basalt"
)

type factArgument struct {
	From     string `json:"from" jsonschema:"the name of an entity"`
	Relation string `json:"relation" jsonschema:"a verb, such as works_at"`
	To       string `json:"to" jsonschema:"the name of another entity"`
	Replaces bool   `json:"replaces,omitempty" jsonschema:"true: earlier relations of this type from this entity hold no longer; they stay as history"`
}

type rememberArguments struct {
	Text  string         `json:"text,omitempty" jsonschema:"what to remember, in a sentence or a few"`
	About []string       `json:"about,omitempty" jsonschema:"names of entities that the text is about: it becomes an observation of each"`
	Type  string         `json:"type,omitempty" jsonschema:"the type of new entities, such as person"`
	Facts []factArgument `json:"facts,omitempty" jsonschema:"relations between entities"`
}

type rememberResult struct {
	Sources      []string `json:"sources" jsonschema:"where the text is kept; forget takes these"`
	NewEntities  []string `json:"new_entities"`
	NewFacts     int      `json:"new_facts" jsonschema:"relations that were not known"`
	EndedFacts   int      `json:"ended_facts" jsonschema:"relations that a new one has replaced"`
	AlreadyKnown bool     `json:"already_known" jsonschema:"true: nothing was new"`
}

// remember adds a text and facts. What is known already stays as it is: the same call twice is the same as once.
func remember(s *space, tx *basalt.Tx, a rememberArguments) (rememberResult, error) {
	result := rememberResult{Sources: []string{}, NewEntities: []string{}}
	text := strings.TrimSpace(a.Text)
	if text == "" && len(a.Facts) == 0 {
		return result, refuse("there is nothing to remember: give a text or facts")
	}
	changed := false
	if text != "" && len(a.About) == 0 {
		digest := sha256.Sum256([]byte(text))
		source := notePrefix + hex.EncodeToString(digest[:8])
		known, err := s.getSource(source)
		if err != nil {
			return result, err
		}
		if known == nil {
			changed = true
			if err := s.putSource(tx, source, "", text, cut(text, 80)); err != nil {
				return result, err
			}
		}
		result.Sources = append(result.Sources, source)
	}
	entityType := a.Type
	if entityType == "" {
		entityType = "thing"
	}
	observe := func(name string, observations ...string) error {
		entity, err := getEntity(s.graph.In(tx), name)
		if err != nil {
			return err
		}
		if entity == nil {
			entity = &Entity{Name: name, EntityType: entityType}
			result.NewEntities = append(result.NewEntities, name)
		} else if len(observations) == 0 || slices.Contains(entity.Observations, observations[0]) {
			return nil
		}
		changed = true
		entity.Observations = append(entity.Observations, observations...)
		return s.putEntity(tx, *entity)
	}
	for _, name := range a.About {
		var observations []string
		if text != "" {
			observations = []string{text}
			result.Sources = append(result.Sources, entityPrefix+name)
		}
		if err := observe(name, observations...); err != nil {
			return result, err
		}
	}
	for _, fact := range a.Facts {
		relation := Relation{From: fact.From, To: fact.To, RelationType: fact.Relation}
		for _, name := range []string{fact.From, fact.To} {
			if err := observe(name); err != nil {
				return result, err
			}
		}
		if fact.Replaces {
			ended, err := s.endRelations(tx, fact.From, fact.Relation, fact.To)
			if err != nil {
				return result, err
			}
			result.EndedFacts += ended
		}
		created, err := s.putRelation(tx, relation)
		if err != nil {
			return result, err
		}
		if created {
			result.NewFacts++
		}
	}
	result.AlreadyKnown = !changed && result.NewFacts == 0 && result.EndedFacts == 0
	return result, nil
}

type ingestArguments struct {
	Source string `json:"source" jsonschema:"the name of the document, such as a path or an address: the same name replaces it"`
	Text   string `json:"text" jsonschema:"the text of the document"`
	Title  string `json:"title,omitempty" jsonschema:"its title"`
}

type ingestResult struct {
	Source   string `json:"source" jsonschema:"its name in recall and forget"`
	Replaced bool   `json:"replaced" jsonschema:"true: there was one of this name"`
}

// documentBytesMax keeps the change that adds or removes a document short.
const documentBytesMax = 256 << 10

// ingest adds a document, or replaces it.
func ingest(s *space, tx *basalt.Tx, a ingestArguments) (ingestResult, error) {
	if err := checkName("the name of a document", a.Source); err != nil {
		return ingestResult{}, err
	}
	if len(a.Text) > documentBytesMax {
		return ingestResult{}, refuse("the text has %d bytes, and a document has up to %d: ingest it in parts, with a name for each",
			len(a.Text), documentBytesMax)
	}
	if strings.TrimSpace(a.Text) == "" {
		return ingestResult{}, refuse("the text is empty: forget removes a document")
	}
	result := ingestResult{Source: docPrefix + a.Source}
	known, err := s.getSource(result.Source)
	if err != nil {
		return result, err
	}
	result.Replaced = known != nil
	title := a.Title
	if title == "" {
		title = a.Source
	}
	err = errors.Join(tx.PutIn(s.texts, []byte(result.Source), []byte(a.Text)),
		tx.DeleteIn(s.texts, []byte(metadataPrefix+result.Source)))
	if err != nil {
		return result, err
	}
	return result, s.putSource(tx, result.Source, title, a.Text, title)
}

type statsArguments struct {
	Limits
}

type statsResult struct {
	Space     string   `json:"space"`
	Entities  uint64   `json:"entities"`
	Notes     uint64   `json:"notes"`
	Documents uint64   `json:"documents"`
	Relations uint64   `json:"relations" jsonschema:"those that were replaced included"`
	Spaces    []string `json:"spaces" jsonschema:"the names of all spaces"`
	Database  string   `json:"database" jsonschema:"where the memory lies"`
	Rest
}

// stats counts what a space holds, and names the others.
func stats(m *Memory, s *space, a statsArguments) (statsResult, error) {
	result := statsResult{Database: m.path}
	offset, err := parseOffset(a.Cursor)
	if err != nil {
		return result, err
	}
	limit := a.limit(100, 1000)
	names, err := m.spaceNames(offset + limit + 1)
	if err != nil {
		return result, err
	}
	result.Spaces = names[min(offset, len(names)):]
	budget := a.budget()
	budget.takeBytes(len(m.path) + 200)
	for i, name := range result.Spaces {
		if i == limit || (!budget.takeBytes(len(name)+3) && i > 0) {
			result.Spaces, result.NextCursor = result.Spaces[:i], fmt.Sprint(offset+i)
			result.LeftOut = "more spaces: go on with next_cursor"
			break
		}
	}
	if s == nil {
		return result, nil
	}
	result.Space = s.name
	held := *s.counts.Load()
	result.Entities, result.Notes, result.Documents = held.entities, held.notes, held.documents
	result.Relations = held.relations
	return result, nil
}
