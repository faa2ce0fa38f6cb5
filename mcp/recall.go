package main

import (
	"fmt"
	"strings"
	"time"

	"basalt"
)

// Fact is a relation as answers show it.
type Fact struct {
	From     string `json:"from"`
	Relation string `json:"relation"`
	To       string `json:"to"`
}

// Hit is a part of a remembered text.
type Hit struct {
	Source   string  `json:"source" jsonschema:"what the text is from: entity/NAME, note/DIGEST or doc/SOURCE; forget takes it"`
	Title    string  `json:"title,omitempty"`
	Text     string  `json:"text"`
	Begin    int     `json:"begin" jsonschema:"where the text begins in its source, in bytes"`
	End      int     `json:"end"`
	Recorded string  `json:"recorded,omitempty" jsonschema:"when the source was last changed"`
	Age      string  `json:"age,omitempty" jsonschema:"the time since then"`
	Score    float64 `json:"score"`
	Why      Why     `json:"why"`
	Facts    []Fact  `json:"facts" jsonschema:"relations of the entity that the text is about, up to 10"`
}

// Why says why a text was found.
type Why struct {
	Words float64  `json:"words" jsonschema:"BM25 of the words; 0: found by links alone"`
	Links float64  `json:"links" jsonschema:"what links between texts added to the score"`
	Path  []string `json:"path,omitempty" jsonschema:"how links led to it from a text that was found by its words"`
}

type recallArguments struct {
	Query string `json:"query" jsonschema:"what to look for, in any words"`
	Limits
}

type recallResult struct {
	Hits []Hit `json:"hits" jsonschema:"best first"`
	Rest
}

const (
	recallLimit = 10
	factsShown  = 10
)

// recall finds texts by words and links.
func recall(_ *Memory, s *space, a recallArguments) (recallResult, error) { return s.find(a, true) }

// find is recall; `explain`: with Why.Path, which takes time.
func (s *space) find(a recallArguments, explain bool) (recallResult, error) {
	result := recallResult{Hits: []Hit{}}
	offset, err := parseOffset(a.Cursor)
	if err != nil {
		return result, err
	}
	if strings.TrimSpace(a.Query) == "" {
		return result, refuse("the query is empty: say what to look for")
	}
	if s == nil {
		return result, nil
	}
	limit, budget := a.limit(recallLimit, 100), a.budget()
	found, _, err := s.corpus.Retrieve(a.Query, basalt.RetrieveOptions{K: offset + limit + 1, Explain: explain})
	if err != nil {
		return result, err
	}
	seen := map[string]bool{}
	for i, passage := range found {
		text := strings.TrimSpace(passage.Text)
		if seen[text] || i < offset {
			seen[text] = true
			continue
		}
		if len(result.Hits) == limit {
			result.NextCursor = fmt.Sprint(i)
			break
		}
		hit, err := s.hit(passage)
		if err != nil {
			return result, err
		}
		if !budget.any {
			hit.Text = cut(hit.Text, budget.left*bytesPerToken/2)
		}
		if !budget.take(hit) && budget.any {
			result.NextCursor = fmt.Sprint(i)
			result.LeftOut = "more hits did not fit into max_tokens: go on with next_cursor, or ask for more"
			break
		}
		budget.any = true
		seen[text] = true
		result.Hits = append(result.Hits, hit)
	}
	return result, nil
}

func (s *space) hit(passage basalt.Passage) (Hit, error) {
	hit := Hit{Source: passage.Source, Title: passage.Title, Text: passage.Text, Begin: passage.Begin, End: passage.End,
		Score: passage.Score, Why: Why{Links: passage.Parts.Links, Path: passage.Evidence}, Facts: []Fact{}}
	if passage.Parts.BM25 != nil {
		hit.Why.Words = *passage.Parts.BM25
	}
	record, err := s.getSource(passage.Source)
	if err != nil {
		return hit, err
	}
	if record != nil {
		hit.Recorded, hit.Age = record.time.UTC().Format(time.RFC3339), age(time.Since(record.time))
	}
	if name, ok := strings.CutPrefix(passage.Source, entityPrefix); ok {
		hit.Facts, err = s.facts(name, factsShown)
	}
	return hit, err
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// facts gives up to limit present relations of an entity.
func (s *space) facts(name string, limit int) ([]Fact, error) {
	facts := []Fact{}
	page, _, err := s.graph.Neighbors(name, basalt.EdgeFilter{Direction: basalt.Both, AsOf: now()}, limit, "")
	for _, neighbor := range page {
		facts = append(facts, factOf(name, neighbor))
	}
	return facts, err
}

func factOf(name string, neighbor basalt.Neighbor) Fact {
	if neighbor.Direction == "in" {
		return Fact{neighbor.ID, neighbor.Type, name}
	}
	return Fact{name, neighbor.Type, neighbor.ID}
}

func (f Fact) String() string { return f.From + " -" + f.Relation + "-> " + f.To }

type contextResult struct {
	Context string   `json:"context" jsonschema:"texts and facts, ready to be read"`
	Sources []string `json:"sources" jsonschema:"what the texts are from, in order"`
	Tokens  int      `json:"tokens" jsonschema:"the size of the context"`
	Rest
}

// contextSeeds and the bounds of related keep a context quick, however many relations there are.
const (
	contextRelated = 5
	contextSeeds   = 5
)

// buildContext puts together what recall finds, and what the relations of those entities lead to.
func buildContext(_ *Memory, s *space, a recallArguments) (contextResult, error) {
	result := contextResult{Sources: []string{}}
	budget := a.budget()
	a.MaxTokens = 1 << 30
	a.Limit = a.limit(20, 100)
	found, err := s.find(a, false)
	if err != nil || s == nil {
		return result, err
	}
	offset, _ := parseOffset(a.Cursor)
	var text strings.Builder
	var seeds []string
	shown := map[string]bool{}
	result.NextCursor = found.NextCursor
	for i, hit := range found.Hits {
		block := contextBlock(hit)
		if !budget.any {
			block = cut(block, budget.left*bytesPerToken-8)
		}
		if !budget.takeBytes(len(block)) {
			result.NextCursor = fmt.Sprint(offset + i)
			result.LeftOut = "more texts did not fit into max_tokens: go on with next_cursor, or ask for more"
			break
		}
		text.WriteString(block)
		result.Sources = append(result.Sources, hit.Source)
		shown[hit.Source] = true
		if name, ok := strings.CutPrefix(hit.Source, entityPrefix); ok {
			seeds = append(seeds, name)
		}
	}
	if result.LeftOut == "" {
		related, err := s.related(seeds, shown)
		if err != nil {
			return result, err
		}
		for _, block := range related {
			if !budget.takeBytes(len(block)) {
				result.LeftOut = "related entities did not fit into max_tokens: neighbors shows them"
				break
			}
			text.WriteString(block)
		}
	}
	result.Context, result.Tokens = text.String(), budget.used
	return result, nil
}

func contextBlock(hit Hit) string {
	var block strings.Builder
	fmt.Fprintf(&block, "## %s", hit.Source)
	if hit.Recorded != "" {
		fmt.Fprintf(&block, " (recorded %s)", hit.Recorded)
	}
	fmt.Fprintf(&block, "\n%s\n", strings.TrimSpace(hit.Text))
	for _, fact := range hit.Facts {
		fmt.Fprintf(&block, "- %s\n", fact)
	}
	return block.String()
}

// related gives the entities of the greatest personalised PageRank that are not shown yet.
func (s *space) related(seeds []string, shown map[string]bool) ([]string, error) {
	if len(seeds) == 0 {
		return nil, nil
	}
	filter := basalt.EdgeFilter{Direction: basalt.Both, AsOf: now(), VisitedMax: 1000, FanOutMax: 200}
	ranked, _, err := s.graph.PageRank(seeds[:min(len(seeds), contextSeeds)], filter, len(seeds)+contextRelated)
	if err != nil {
		return nil, err
	}
	var blocks []string
	for _, node := range ranked {
		if shown[entityPrefix+node.ID] || len(blocks) == contextRelated {
			continue
		}
		entity, err := getEntity(s.graph, node.ID)
		if err != nil {
			return nil, err
		}
		if entity != nil {
			text := cut(strings.Join(entity.Observations, "\n"), 400)
			blocks = append(blocks, fmt.Sprintf("## related: %s (%s)\n%s\n", entity.Name, entity.EntityType, text))
		}
	}
	return blocks, nil
}
