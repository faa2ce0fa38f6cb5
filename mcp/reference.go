package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"basalt"
)

// The nine tools of the reference memory server (@modelcontextprotocol/server-memory), with its names, shapes and
// results. Reads have limits beside; what an answer does not have, next_cursor gives.

type entitiesArguments struct {
	Entities []Entity `json:"entities"`
}
type relationsArguments struct {
	Relations []Relation `json:"relations"`
}
type observationsArguments struct {
	Observations []struct {
		EntityName string   `json:"entityName" jsonschema:"The name of the entity to add the observations to"`
		Contents   []string `json:"contents" jsonschema:"An array of observation contents to add"`
	} `json:"observations"`
}
type addedObservations struct {
	EntityName        string   `json:"entityName"`
	AddedObservations []string `json:"addedObservations"`
}
type observationsResult struct {
	Results []addedObservations `json:"results"`
}
type namesArguments struct {
	EntityNames []string `json:"entityNames" jsonschema:"An array of entity names to delete"`
}
type deletionsArguments struct {
	Deletions []struct {
		EntityName   string   `json:"entityName" jsonschema:"The name of the entity containing the observations"`
		Observations []string `json:"observations" jsonschema:"An array of observations to delete"`
	} `json:"deletions"`
}
type successResult struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}
type searchArguments struct {
	Query string `json:"query" jsonschema:"The search query to match against entity names, types, and observation content"`
	Limits
}
type openArguments struct {
	Names []string `json:"names" jsonschema:"An array of entity names to retrieve"`
	Limits
}
type graphResult struct {
	Entities  []Entity   `json:"entities"`
	Relations []Relation `json:"relations"`
	Rest
}

func createEntities(s *space, tx *basalt.Tx, a entitiesArguments) (entitiesArguments, error) {
	created := entitiesArguments{Entities: []Entity{}}
	for _, entity := range a.Entities {
		known, err := getEntity(s.graph.In(tx), entity.Name)
		if err != nil {
			return created, err
		}
		if known != nil {
			continue
		}
		if entity.Observations == nil {
			entity.Observations = []string{}
		}
		if err := s.putEntity(tx, entity); err != nil {
			return created, err
		}
		created.Entities = append(created.Entities, entity)
	}
	return created, nil
}

func createRelations(s *space, tx *basalt.Tx, a relationsArguments) (relationsArguments, error) {
	created := relationsArguments{Relations: []Relation{}}
	for _, relation := range a.Relations {
		isNew, err := s.putRelation(tx, relation)
		if err != nil {
			return created, err
		}
		if isNew {
			created.Relations = append(created.Relations, relation)
		}
	}
	return created, nil
}

func addObservations(s *space, tx *basalt.Tx, a observationsArguments) (observationsResult, error) {
	result := observationsResult{Results: []addedObservations{}}
	for _, addition := range a.Observations {
		entity, err := getEntity(s.graph.In(tx), addition.EntityName)
		if err != nil {
			return result, err
		}
		if entity == nil {
			return result, refuse("Entity with name %s not found", addition.EntityName)
		}
		added := addedObservations{EntityName: addition.EntityName, AddedObservations: []string{}}
		for _, content := range addition.Contents {
			if !slices.Contains(entity.Observations, content) {
				added.AddedObservations = append(added.AddedObservations, content)
			}
		}
		if len(added.AddedObservations) > 0 {
			entity.Observations = append(entity.Observations, added.AddedObservations...)
			if err := s.putEntity(tx, *entity); err != nil {
				return result, err
			}
		}
		result.Results = append(result.Results, added)
	}
	return result, nil
}

func deleteEntities(s *space, tx *basalt.Tx, a namesArguments) (successResult, error) {
	done := successResult{true, "Entities deleted successfully"}
	if s == nil {
		return done, nil
	}
	for _, name := range a.EntityNames {
		if _, err := s.removeEntity(tx, name); err != nil {
			return successResult{}, err
		}
	}
	return done, nil
}

func deleteObservations(s *space, tx *basalt.Tx, a deletionsArguments) (successResult, error) {
	done := successResult{true, "Observations deleted successfully"}
	if s == nil {
		return done, nil
	}
	for _, deletion := range a.Deletions {
		entity, err := getEntity(s.graph.In(tx), deletion.EntityName)
		if err != nil {
			return successResult{}, err
		}
		if entity == nil {
			continue
		}
		count := len(entity.Observations)
		entity.Observations = slices.DeleteFunc(entity.Observations, func(observation string) bool {
			return slices.Contains(deletion.Observations, observation)
		})
		if len(entity.Observations) == count {
			continue
		}
		if err := s.putEntity(tx, *entity); err != nil {
			return successResult{}, err
		}
	}
	return done, nil
}

func deleteRelations(s *space, tx *basalt.Tx, a relationsArguments) (successResult, error) {
	done := successResult{true, "Relations deleted successfully"}
	if s == nil {
		return done, nil
	}
	for _, relation := range a.Relations {
		if err := s.removeRelation(tx, relation.edge()); err != nil {
			return successResult{}, err
		}
	}
	return done, nil
}

func readGraph(_ *Memory, s *space, a Limits) (graphResult, error) {
	return readPage(s, a, selection{match: func(source) bool { return true }, whole: true})
}

func searchNodes(_ *Memory, s *space, a searchArguments) (graphResult, error) {
	query := []byte(strings.ToLower(a.Query))
	return readPage(s, a.Limits, selection{part: query, match: func(record source) bool {
		// A name and what follows are parted by a zero byte, which a query may have.
		name, rest, _ := bytes.Cut(record.text, []byte{0})
		return bytes.Contains(name, query) || bytes.Contains(rest, query)
	}})
}

func openNodes(_ *Memory, s *space, a openArguments) (graphResult, error) {
	names := map[string]bool{}
	for _, name := range a.Names {
		names[entityPrefix+name] = true
	}
	only := slices.Sorted(maps.Keys(names))
	return readPage(s, a.Limits, selection{only: only, match: func(record source) bool { return names[string(record.name)] }})
}

// position is where a page begins: at a source, or among its relations.
type position struct {
	Source    string `json:"s"`
	Relations string `json:"r,omitempty"`
	In        bool   `json:"i,omitempty"`
	Inside    bool   `json:"m,omitempty"`
}

func (p position) String() string {
	text, _ := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text)
}

func parsePosition(cursor string) (p position, err error) {
	if cursor == "" {
		return position{Source: entityPrefix}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &p) != nil {
		return p, refuseCursor(cursor)
	}
	return p, nil
}

// selection says which entities a page has: those that match.
type selection struct {
	match func(source) bool
	only  []string // If not nil: the sources that may match, in order.
	part  []byte   // What each record that matches contains.
	whole bool     // All match. The relations that leave each name, entity or not, are all relations.
}

// pageWriter fills a page of entities and relations up to its limits.
type pageWriter struct {
	space  *space
	match  func(source) bool
	limit  int
	budget *budget
	result *graphResult
}

// readPage gives the entities that match, in the order of names, and the relations with an end that matches.
func readPage(s *space, a Limits, chosen selection) (graphResult, error) {
	result := graphResult{Entities: []Entity{}, Relations: []Relation{}}
	from, err := parsePosition(a.Cursor)
	if err != nil || s == nil {
		return result, err
	}
	w := pageWriter{s, chosen.match, a.limit(1<<30, 1<<30), a.budget(), &result}
	err = s.forEachSource(from.Source, chosen, func(record source) (bool, error) {
		if !w.match(record) {
			return true, nil
		}
		at := position{Source: string(record.name)}
		if at.Source == from.Source {
			at = from
		}
		rest, err := w.add(at, chosen.whole)
		if rest != nil {
			result.NextCursor = rest.String()
			result.LeftOut = "more did not fit into the limits: go on with next_cursor, or ask for more max_tokens"
		}
		return rest == nil, err
	})
	return result, err
}

// forEachSource visits the entities from a source on that may match; for the whole graph, also the names that are no
// entities.
func (s *space) forEachSource(from string, chosen selection, visit func(source) (bool, error)) error {
	for _, name := range chosen.only {
		if name < from {
			continue
		}
		record, err := s.getSource(name)
		if err != nil {
			return err
		}
		if record == nil {
			continue
		}
		if more, err := visit(*record); err != nil || !more {
			return err
		}
	}
	if chosen.only != nil {
		return nil
	}
	var c *catalog
	if len(chosen.part) > 0 {
		var err error
		if c, err = s.memory.catalogFor(s); err != nil {
			return err
		}
	}
	for _, prefix := range []string{entityPrefix, namePrefix} {
		end := prefix[:len(prefix)-1] + "0" // Behind all that begins with it.
		if prefix == namePrefix && !chosen.whole || from >= end {
			continue
		}
		more, problem := true, error(nil)
		err := s.walk(c, max(from, prefix), end, chosen.part, func(record source) bool {
			more, problem = visit(record)
			return more && problem == nil
		})
		if err = errors.Join(err, problem); err != nil || !more {
			return err
		}
	}
	return nil
}

// add writes an entity and its relations, from a position on. It gives the position of what does not fit.
func (w *pageWriter) add(at position, whole bool) (*position, error) {
	name, isEntity := strings.CutPrefix(at.Source, entityPrefix)
	if !isEntity {
		name = strings.TrimPrefix(at.Source, namePrefix)
	}
	if isEntity && !at.Inside {
		entity, err := getEntity(w.space.graph, name)
		if err != nil || entity == nil {
			return nil, err
		}
		if len(w.result.Entities) >= w.limit {
			return &at, nil
		}
		if !w.budget.take(entity) {
			if w.budget.any {
				return &at, nil
			}
			w.shorten(entity)
		}
		w.result.Entities = append(w.result.Entities, *entity)
	}
	at.Inside = true
	if !at.In {
		if rest, err := w.addRelations(name, at, basalt.Out); rest != nil || err != nil {
			return rest, err
		}
		at.Relations = ""
	}
	if whole {
		return nil, nil
	}
	at.In = true
	return w.addRelations(name, at, basalt.In)
}

// shorten keeps the observations that fit where an entity alone is larger than the answer may be.
func (w *pageWriter) shorten(entity *Entity) {
	w.budget.takeBytes(len(entity.Name) + len(entity.EntityType))
	for i, observation := range entity.Observations {
		if !w.budget.takeBytes(len(observation) + 4) {
			entity.Observations = entity.Observations[:i]
			w.result.LeftOut = "observations"
			break
		}
	}
	w.budget.any = true
}

func (w *pageWriter) addRelations(name string, at position, direction basalt.Direction) (*position, error) {
	const page = 100
	filter := basalt.EdgeFilter{Direction: direction, AsOf: now()}
	for {
		neighbors, next, err := w.space.graph.Neighbors(name, filter, page, at.Relations)
		if err != nil {
			return nil, err
		}
		begin := at.Relations
		for i, neighbor := range neighbors {
			fact := factOf(name, neighbor)
			relation := Relation{From: fact.From, To: fact.To, RelationType: fact.Relation}
			if direction == basalt.In {
				// One whose beginning matches too is given there.
				other, err := w.space.getSource(entityPrefix + neighbor.ID)
				if err != nil {
					return nil, err
				}
				if other != nil && w.match(*other) {
					continue
				}
			}
			if w.budget.take(relation) || !w.budget.any {
				w.budget.any = true
				w.result.Relations = append(w.result.Relations, relation)
				continue
			}
			// The graph gives positions of pages only: ask for a page that ends here.
			if i > 0 {
				if _, begin, err = w.space.graph.Neighbors(name, filter, i, begin); err != nil {
					return nil, err
				}
			}
			at.Relations = begin
			return &at, nil
		}
		if at.Relations = next; next == "" {
			return nil, nil
		}
	}
}
