package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"basalt"
)

func openMemory(t *testing.T) *Memory {
	t.Helper()
	m, err := OpenMemory(filepath.Join(t.TempDir(), "m"), basalt.Process)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// ask calls a tool of a memory; a refusal is an error.
func ask[R any](t *testing.T, backend caller, space, tool string, arguments any) R {
	t.Helper()
	var result R
	if err := callTool(context.Background(), backend, space, tool, arguments, &result); err != nil {
		t.Fatalf("%s in %q: %v", tool, space, err)
	}
	return result
}

const all = 1 << 30

// model is the knowledge graph of one space as the reference server has it.
type model struct {
	entities  map[string]*Entity
	relations map[Relation]bool
}

func newModel() *model { return &model{map[string]*Entity{}, map[Relation]bool{}} }

func (m *model) graph(match func(*Entity) bool, whole bool) graphResult {
	result := graphResult{Entities: []Entity{}, Relations: []Relation{}}
	for _, entity := range m.entities {
		if match(entity) {
			result.Entities = append(result.Entities, *entity)
		}
	}
	for relation := range m.relations {
		from, to := m.entities[relation.From], m.entities[relation.To]
		if whole || from != nil && match(from) || to != nil && match(to) {
			result.Relations = append(result.Relations, relation)
		}
	}
	return sorted(result)
}

func sorted(g graphResult) graphResult {
	slices.SortFunc(g.Entities, func(a, b Entity) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(g.Relations, func(a, b Relation) int {
		return strings.Compare(a.From+"\x00"+a.RelationType+"\x00"+a.To, b.From+"\x00"+b.RelationType+"\x00"+b.To)
	})
	return g
}

func equal(a, b graphResult) bool {
	return reflect.DeepEqual(a.Entities, b.Entities) && reflect.DeepEqual(a.Relations, b.Relations)
}

func seedOf(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BASALT_SEED"); text != "" {
		fmt.Sscan(text, &seed)
	}
	t.Logf("BASALT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Random changes of spaces whose names are like each other: each is what a model of its own is, whole, searched and
// page by page.
func TestSpacesDoNotSeeEachOther(t *testing.T) {
	random := seedOf(t)
	memory := openMemory(t)
	spaces := []string{"a", "a.text", "a%2Etext", "A", "a/b", " a", "b/entity/x"}
	models := map[string]*model{}
	for _, space := range spaces {
		models[space] = newModel()
	}
	name := func() string { return fmt.Sprintf("%c", 'p'+rune(random.IntN(8))) }
	defer func() {
		for _, space := range spaces {
			countsAreTrue(t, memory, space)
		}
	}()
	for step := range 400 {
		space := spaces[random.IntN(len(spaces))]
		m := models[space]
		switch random.IntN(7) {
		case 0, 1:
			entity := Entity{name(), "Type " + name(), []string{"in [" + space + "]", name()}}
			created := ask[entitiesArguments](t, memory, space, "create_entities", entitiesArguments{[]Entity{entity}})
			if (len(created.Entities) == 1) != (m.entities[entity.Name] == nil) {
				t.Fatalf("step %d: %+v", step, created)
			}
			if m.entities[entity.Name] == nil {
				m.entities[entity.Name] = &entity
			}
		case 2, 3:
			relation := Relation{name(), name(), "r" + name()}
			created := ask[relationsArguments](t, memory, space, "create_relations", relationsArguments{[]Relation{relation}})
			if (len(created.Relations) == 1) == m.relations[relation] {
				t.Fatalf("step %d: %+v", step, created)
			}
			m.relations[relation] = true
		case 4:
			gone := name()
			ask[successResult](t, memory, space, "delete_entities", namesArguments{[]string{gone}})
			delete(m.entities, gone)
			for relation := range m.relations {
				if relation.From == gone || relation.To == gone {
					delete(m.relations, relation)
				}
			}
		case 5:
			for relation := range m.relations {
				ask[successResult](t, memory, space, "delete_relations", relationsArguments{[]Relation{relation}})
				delete(m.relations, relation)
				break
			}
		case 6:
			if entity := m.entities[name()]; entity != nil {
				text := fmt.Sprint("step ", step)
				ask[observationsResult](t, memory, space, "add_observations", json.RawMessage(fmt.Sprintf(
					`{"observations":[{"entityName":%q,"contents":[%q]}]}`, entity.Name, text)))
				entity.Observations = append(entity.Observations, text)
			}
		}
		if step%10 != 0 {
			continue
		}
		space = spaces[random.IntN(len(spaces))]
		m = models[space]
		got := sorted(ask[graphResult](t, memory, space, "read_graph", Limits{MaxTokens: all}))
		if want := m.graph(func(*Entity) bool { return true }, true); !equal(got, want) {
			t.Fatalf("step %d, %q: got %+v, want %+v", step, space, got, want)
		}
		pages := graphResult{Entities: []Entity{}, Relations: []Relation{}}
		limits := Limits{MaxTokens: 1 + random.IntN(60), Limit: random.IntN(4)}
		for {
			page := ask[graphResult](t, memory, space, "read_graph", limits)
			pages.Entities = append(pages.Entities, page.Entities...)
			pages.Relations = append(pages.Relations, page.Relations...)
			if limits.Cursor = page.NextCursor; page.NextCursor == "" {
				break
			}
			if len(page.Entities)+len(page.Relations) == 0 {
				t.Fatalf("step %d: a page without anything: %+v", step, limits)
			}
		}
		for i := range pages.Entities {
			pages.Entities[i].Observations = m.entities[pages.Entities[i].Name].Observations // May be cut.
		}
		if !equal(sorted(pages), got) {
			t.Fatalf("step %d, %q: pages of %+v: %+v, whole %+v", step, space, limits, pages, got)
		}
		query := strings.ToUpper(name())
		found := sorted(ask[graphResult](t, memory, space, "search_nodes", searchArguments{query, Limits{MaxTokens: all}}))
		matches := func(e *Entity) bool {
			return strings.Contains(strings.ToLower(e.Name+"\n"+e.EntityType+"\n"+strings.Join(e.Observations, "\n")), strings.ToLower(query))
		}
		if want := m.graph(matches, false); !equal(found, want) {
			t.Fatalf("step %d, %q, search for %q: got %+v, want %+v", step, space, query, found, want)
		}
		names := []string{name(), name()}
		opened := sorted(ask[graphResult](t, memory, space, "open_nodes", openArguments{names, Limits{MaxTokens: all}}))
		if want := m.graph(func(e *Entity) bool { return slices.Contains(names, e.Name) }, false); !equal(opened, want) {
			t.Fatalf("step %d, %q, open %v: got %+v, want %+v", step, space, names, opened, want)
		}
		for _, hit := range ask[recallResult](t, memory, space, "recall", recallArguments{Query: "in " + name()}).Hits {
			if entity := m.entities[strings.TrimPrefix(hit.Source, entityPrefix)]; entity == nil ||
				!strings.Contains(hit.Text, "in ["+space+"]") {
				t.Fatalf("step %d, %q: a hit of another space, or of what is gone: %+v", step, space, hit)
			}
		}
	}
}

// countsAreTrue compares the counts that changes have kept with what there is.
func countsAreTrue(t *testing.T, memory *Memory, name string) {
	t.Helper()
	s, err := memory.space(name, false)
	if err != nil || s == nil {
		t.Fatal(name, err)
	}
	counted, err := s.loadCounts(nil)
	if kept := *s.counts.Load(); err != nil || kept != counted {
		t.Errorf("%q: the counts are %+v, and there are %+v: %v", name, kept, counted, err)
	}
}

// Random changes of few entities, with relations that replace others, and removals: the counts stay true.
func TestCountsStayTrue(t *testing.T) {
	random := seedOf(t)
	memory := openMemory(t)
	name := func() string { return fmt.Sprint("n", random.IntN(4)) }
	for step := range 200 {
		switch random.IntN(6) {
		case 0, 1, 2:
			var facts []factArgument
			for range 1 + random.IntN(4) {
				facts = append(facts, factArgument{name(), "r", name(), random.IntN(2) == 0})
			}
			ask[rememberResult](t, memory, "s", "remember", rememberArguments{Text: "t" + name(), About: []string{name()}, Facts: facts})
		case 3:
			ask[rememberResult](t, memory, "s", "remember", rememberArguments{Text: "note " + name()})
			ask[ingestResult](t, memory, "s", "ingest", ingestArguments{Source: name(), Text: "text " + name()})
		case 4:
			chosen := forgetArguments{Sources: []string{"entity/" + name(), "doc/" + name()}, Facts: []factArgument{{From: name(), Relation: "r", To: name()}}}
			chosen.Confirm = ask[forgetResult](t, memory, "s", "forget", chosen).Confirm
			ask[forgetResult](t, memory, "s", "forget", chosen)
		case 5:
			ask[relationsArguments](t, memory, "s", "create_relations", relationsArguments{[]Relation{{name(), "x" + name(), "r"}}})
			ask[successResult](t, memory, "s", "delete_relations", relationsArguments{[]Relation{{name(), name(), "r"}}})
			// One that is refused after its first relation counts nothing.
			refused := relationsArguments{[]Relation{{name(), fmt.Sprint("refused ", step), "r"}, {"", "", ""}}}
			if callTool(context.Background(), memory, "s", "create_relations", refused, &relationsArguments{}) == nil {
				t.Fatal("a relation without names")
			}
		}
		if step%20 == 19 {
			countsAreTrue(t, memory, "s")
		}
	}
	countsAreTrue(t, memory, "s")
}

func TestAChangeThatIsSentAgainGetsTheSameAnswer(t *testing.T) {
	memory := openMemory(t)
	request := Request{ID: "id", Tool: "create_entities", Space: "s",
		Arguments: []byte(`{"entities":[{"name":"a","entityType":"t","observations":[]}]}`)}
	first, err := memory.Call(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	second, err := memory.Call(context.Background(), request)
	if err != nil || string(first.Result) != string(second.Result) || !strings.Contains(string(first.Result), `"a"`) {
		t.Errorf("%v: %s, %s", err, first.Result, second.Result)
	}
}

// What reads, removes or is refused makes no space.
func TestOnlyWhatIsKeptMakesASpace(t *testing.T) {
	memory := openMemory(t)
	for tool, arguments := range map[string]string{
		"forget":              `{"everything":true}`,
		"delete_entities":     `{"entityNames":["a"]}`,
		"delete_relations":    `{"relations":[{"from":"a","to":"b","relationType":"r"}]}`,
		"delete_observations": `{"deletions":[{"entityName":"a","observations":["o"]}]}`,
		"add_observations":    `{"observations":[{"entityName":"a","contents":["o"]}]}`,
		"create_entities":     `{"entities":[]}`,
		"remember":            `{}`,
		"recall":              `{"query":"a"}`,
		"search_nodes":        `{"query":"a"}`,
	} {
		reply, err := memory.Call(context.Background(), Request{Tool: tool, Space: tool, Arguments: []byte(arguments)})
		if err != nil || (reply.Failure != "") != (tool == "add_observations" || tool == "remember") {
			t.Errorf("%s: %v %s", tool, err, reply.Failure)
		}
		if names := ask[statsResult](t, memory, "other", "stats", statsArguments{}).Spaces; len(names) != 0 {
			t.Fatalf("%s has made the spaces %q", tool, names)
		}
	}
	if keyspaces := spacesOnDisk(t, memory, "forget", "delete_entities", "recall", "search_nodes"); keyspaces != 0 {
		t.Errorf("reads and removals have made %d keyspaces", keyspaces)
	}
}

func spacesOnDisk(t *testing.T, memory *Memory, spaces ...string) (found int) {
	for _, name := range spaces {
		if _, err := memory.store.OpenGraph("graph/"+escape(name), true); err == nil {
			found++
		} else if !errors.Is(err, basalt.NotFound) {
			t.Fatal(err)
		}
	}
	return found
}

// Every read keeps within its budget, whatever there is.
func TestReadsKeepWithinTheirBudget(t *testing.T) {
	memory := openMemory(t)
	long := strings.Repeat("An observation about whales. ", 400)
	var entities []Entity
	var relations []Relation
	for i := range 300 {
		entities = append(entities, Entity{fmt.Sprint("e", i), "t", []string{fmt.Sprint(i, " ", long)}})
		relations = append(relations, Relation{"e0", fmt.Sprint("e", i), "knows"}, Relation{fmt.Sprint("e", i), "e1", "knows"})
	}
	for i := 0; i < len(entities); i += 50 {
		ask[entitiesArguments](t, memory, "s", "create_entities", entitiesArguments{entities[i : i+50]})
	}
	ask[relationsArguments](t, memory, "s", "create_relations", relationsArguments{relations})
	for _, maxTokens := range []int{0, 50, 300, 20000} {
		limits := Limits{MaxTokens: maxTokens, Limit: 1000}
		for tool, arguments := range map[string]any{
			"read_graph":   limits,
			"search_nodes": searchArguments{"whales", limits},
			"open_nodes":   openArguments{[]string{"e0", "e1"}, limits},
			"recall":       recallArguments{"whales", limits},
			"context":      recallArguments{"whales", limits},
			"neighbors":    neighborsArguments{Entity: "e0", Limits: limits},
			"paths":        pathsArguments{From: "e0", To: "e1", Limits: limits},
			"forget":       forgetArguments{Everything: true, Limits: limits},
		} {
			text, _ := json.Marshal(arguments)
			reply, err := memory.Call(context.Background(), Request{Tool: tool, Space: "s", Arguments: text})
			if err != nil || reply.Failure != "" {
				t.Fatal(tool, err, reply.Failure)
			}
			// What frames the results is not counted.
			most := maxTokens
			if most == 0 {
				most = maxTokensDefault
			}
			if len(reply.Result) > most*bytesPerToken+1500 {
				t.Errorf("%s with %d tokens: %d bytes", tool, maxTokens, len(reply.Result))
			}
			if len(reply.Result) > most*bytesPerToken/2 && maxTokens < 20000 && tool != "paths" && !strings.Contains(string(reply.Result), "left_out") {
				t.Errorf("%s with %d tokens does not say what it left out: %.300s", tool, maxTokens, reply.Result)
			}
		}
	}
}

func TestImportOfTheReferenceFile(t *testing.T) {
	memory := openMemory(t)
	file := strings.NewReader(`{"type":"entity","name":"Ada","entityType":"person","observations":["wrote a program"]}
{"type":"relation","from":"Ada","to":"Engine","relationType":"wrote_for"}
not JSON

{"type":"entity","name":"Engine","entityType":"machine","observations":[]}`)
	counts, err := importMemory(context.Background(), file, "s", memory)
	if err != nil || counts != (importCounts{2, 1}) {
		t.Fatal(counts, err)
	}
	graph := ask[graphResult](t, memory, "s", "read_graph", Limits{})
	if len(graph.Entities) != 2 || len(graph.Relations) != 1 || graph.Entities[0].Observations[0] != "wrote a program" {
		t.Errorf("%+v", graph)
	}
}

// The largest documents, with 20,000 different words, are kept and forgotten, one a call.
func TestTheLargestDocumentsAreKeptAndForgotten(t *testing.T) {
	memory := openMemory(t)
	random := seedOf(t)
	for i := range 2 {
		var text strings.Builder
		for text.Len() < documentBytesMax-60 {
			fmt.Fprintf(&text, "the word%d and word%d. ", random.IntN(20000), random.IntN(20000))
		}
		ask[ingestResult](t, memory, "s", "ingest", ingestArguments{Source: fmt.Sprint("large ", i), Text: text.String()})
	}
	for calls := 0; ; calls++ {
		shown := ask[forgetResult](t, memory, "s", "forget", forgetArguments{Everything: true})
		if shown.Count == 0 {
			if calls != 2 {
				t.Errorf("%d calls", calls)
			}
			return
		}
		if (calls == 0) != strings.Contains(shown.LeftOut, "call again") {
			t.Errorf("%+v", shown)
		}
		ask[forgetResult](t, memory, "s", "forget", forgetArguments{Everything: true, Confirm: shown.Confirm})
	}
}
