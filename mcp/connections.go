package main

import (
	"fmt"
	"strings"
	"time"

	"basalt"
)

type neighborsArguments struct {
	Entity    string `json:"entity" jsonschema:"the name of an entity, as recall shows it"`
	Direction string `json:"direction,omitempty" jsonschema:"out: relations that begin at the entity; in: that end there; both unless given"`
	Relation  string `json:"relation,omitempty" jsonschema:"only relations of this type"`
	AsOf      string `json:"as_of,omitempty" jsonschema:"relations that held at this time (RFC 3339); now unless given"`
	Limits
}

type connected struct {
	Fact
	Since string `json:"since,omitempty" jsonschema:"when the relation began to hold"`
	Until string `json:"until,omitempty" jsonschema:"when it was replaced; absent: it holds"`
}

type neighborsResult struct {
	Entity    Entity      `json:"entity"`
	Relations []connected `json:"relations"`
	Rest
}

func parseDirection(text string) (basalt.Direction, error) {
	switch text {
	case "", "both":
		return basalt.Both, nil
	case "out":
		return basalt.Out, nil
	case "in":
		return basalt.In, nil
	}
	return 0, refuse("direction is %q, and must be out, in or both", text)
}

func parseTime(text string, unlessGiven time.Time) (time.Time, error) {
	if text == "" {
		return unlessGiven, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, refuse("the time %q is not one such as 2026-07-28T12:00:00Z or 2026-07-28", text)
}

// findEntity gives an entity, or an empty one of its name where relations name it. It is a refusal that there is none.
func (s *space) findEntity(name string) (*Entity, error) {
	if s == nil || name == "" {
		return nil, refuse("there is no entity %q here: recall finds entities by any words", name)
	}
	entity, err := getEntity(s.graph, name)
	if err != nil || entity != nil {
		return entity, err
	}
	node, err := s.graph.GetNode(name)
	if err == nil && node == nil {
		err = refuse("there is no entity %q here: recall finds entities by any words", name)
	}
	return &Entity{Name: name, Observations: []string{}}, err
}

// neighbors gives an entity with its relations.
func neighbors(_ *Memory, s *space, a neighborsArguments) (neighborsResult, error) {
	result := neighborsResult{Entity: Entity{Observations: []string{}}, Relations: []connected{}}
	direction, err := parseDirection(a.Direction)
	if err != nil {
		return result, err
	}
	asOf, err := parseTime(a.AsOf, now())
	if err != nil {
		return result, err
	}
	entity, err := s.findEntity(a.Entity)
	if err != nil {
		return result, err
	}
	budget := a.budget()
	result.Entity.Name, result.Entity.EntityType = entity.Name, entity.EntityType
	budget.takeBytes(len(entity.Name) + len(entity.EntityType) + 64)
	if a.Cursor == "" {
		for i, observation := range entity.Observations {
			// Half of the answer at most: the relations are what was asked for.
			if budget.used > budget.left || !budget.takeBytes(len(observation)+4) {
				result.LeftOut = fmt.Sprintf("%d of %d observations; ", len(entity.Observations)-i, len(entity.Observations))
				break
			}
			result.Entity.Observations = append(result.Entity.Observations, observation)
		}
	}
	filter := basalt.EdgeFilter{Direction: direction, AsOf: asOf}
	if a.Relation != "" {
		filter.Types = []string{a.Relation}
	}
	limit := a.limit(50, 1000)
	cursor, shown := a.Cursor, 0
	for shown < limit {
		page, next, err := s.graph.Neighbors(a.Entity, filter, 1, cursor)
		if err != nil {
			return result, refuseCursor(a.Cursor)
		}
		if len(page) == 0 {
			cursor = ""
			break
		}
		relation, err := s.connected(a.Entity, page[0])
		if err != nil {
			return result, err
		}
		if !budget.take(relation) && shown > 0 {
			result.LeftOut += "more relations did not fit into max_tokens: go on with next_cursor, or ask for more"
			break
		}
		result.Relations = append(result.Relations, relation)
		shown++
		if cursor = next; cursor == "" {
			break
		}
	}
	result.NextCursor = cursor
	result.LeftOut = strings.TrimSuffix(result.LeftOut, "; ")
	return result, nil
}

func (s *space) connected(name string, neighbor basalt.Neighbor) (connected, error) {
	c := connected{Fact: factOf(name, neighbor)}
	content, err := s.graph.GetEdge(basalt.Edge{
		From: c.From, Type: c.Relation, To: c.To, Discriminator: neighbor.Discriminator})
	if err != nil || content == nil {
		return c, err
	}
	if !content.ValidFrom.IsZero() {
		c.Since = content.ValidFrom.UTC().Format(time.RFC3339)
	}
	if !content.ValidTo.IsZero() {
		c.Until = content.ValidTo.UTC().Format(time.RFC3339)
	}
	return c, nil
}

type pathsArguments struct {
	From      string `json:"from" jsonschema:"the name of an entity"`
	To        string `json:"to" jsonschema:"the name of another"`
	MaxHops   int    `json:"max_hops,omitempty" jsonschema:"the greatest number of relations in a path, up to 8; 4 unless given"`
	Direction string `json:"direction,omitempty" jsonschema:"out: relations are followed forwards only; both unless given"`
	AsOf      string `json:"as_of,omitempty" jsonschema:"by relations that held at this time (RFC 3339); now unless given"`
	Limits
}

type foundPath struct {
	Nodes []string `json:"nodes"`
	Facts []Fact   `json:"facts" jsonschema:"the relations, in order; each in its own direction"`
}

type pathsResult struct {
	Paths []foundPath `json:"paths" jsonschema:"shorter ones first; empty: there is none"`
	Rest
}

// These bounds keep paths quick where entities have thousands of relations. An answer says when they were met.
const (
	pathsVisitedMax = 1500
	pathsFanOutMax  = 200
)

// findPaths gives ways from one entity to another.
func findPaths(_ *Memory, s *space, a pathsArguments) (pathsResult, error) {
	result := pathsResult{Paths: []foundPath{}}
	direction, err := parseDirection(a.Direction)
	if err != nil {
		return result, err
	}
	asOf, err := parseTime(a.AsOf, now())
	if err != nil {
		return result, err
	}
	offset, err := parseOffset(a.Cursor)
	if err != nil {
		return result, err
	}
	for _, name := range []string{a.From, a.To} {
		if _, err := s.findEntity(name); err != nil {
			return result, err
		}
	}
	hops := a.MaxHops
	if hops <= 0 {
		hops = 4
	}
	limit, budget := a.limit(5, 100), a.budget()
	filter := basalt.EdgeFilter{Direction: direction, AsOf: asOf, VisitedMax: pathsVisitedMax, FanOutMax: pathsFanOutMax}
	paths, truncated, err := s.graph.Paths(a.From, a.To, min(hops, 8), offset+limit+1, filter)
	if err != nil {
		return result, err
	}
	if truncated {
		result.LeftOut = "the search has ended at its bounds: there may be more paths; "
	}
	for i, path := range paths {
		if i < offset {
			continue
		}
		found := foundPath{Nodes: path.Nodes, Facts: []Fact{}}
		for j, edge := range path.Edges {
			found.Facts = append(found.Facts, factOf(path.Nodes[j], edge))
		}
		if i == offset+limit {
			result.NextCursor = fmt.Sprint(i)
			break
		}
		if !budget.take(found) && len(result.Paths) > 0 {
			result.NextCursor = fmt.Sprint(i)
			result.LeftOut += "more paths did not fit into max_tokens: go on with next_cursor, or ask for more"
			break
		}
		result.Paths = append(result.Paths, found)
	}
	result.LeftOut = strings.TrimSuffix(result.LeftOut, "; ")
	return result, nil
}
