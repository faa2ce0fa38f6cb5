package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"basalt"
)

const (
	largeEntities  = 100000
	largeRelations = 300000
	largeCalls     = 25 // of each tool
	callBudget     = 20 * time.Millisecond
)

// words makes texts whose words are as unequally frequent as those of English.
type words struct {
	random *rand.Rand
	zipf   *rand.Zipf
}

func newWords(random *rand.Rand) words {
	return words{random, rand.NewZipf(random, 1.1, 4, 30000)}
}

func (w words) text(count int) string {
	var text strings.Builder
	for range count {
		fmt.Fprintf(&text, "w%d ", w.zipf.Uint64())
	}
	return text.String()
}

// fillLarge creates the entities and relations in a database that has none yet.
func fillLarge(t *testing.T, path string, random *rand.Rand) {
	memory, err := OpenMemory(path, basalt.Process)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if ask[statsResult](t, memory, "s", "stats", statsArguments{}).Entities > 0 {
		return
	}
	start := time.Now()
	w := newWords(random)
	popular := rand.NewZipf(random, 1.05, 10, largeEntities-1)
	const batch = 500
	for i := 0; i < largeEntities; i += batch {
		var entities []Entity
		for j := i; j < i+batch; j++ {
			// Texts name other entities, some of them often.
			about := fmt.Sprintf("%sis known to entity %d", w.text(8), popular.Uint64())
			entities = append(entities, Entity{fmt.Sprint("entity ", j), "thing", []string{w.text(10), about}})
		}
		ask[entitiesArguments](t, memory, "s", "create_entities", entitiesArguments{entities})
	}
	for i := 0; i < largeRelations; i += batch {
		var relations []Relation
		for range batch {
			relations = append(relations, Relation{fmt.Sprint("entity ", random.IntN(largeEntities)),
				fmt.Sprint("entity ", popular.Uint64()), fmt.Sprint("verb", random.IntN(20))})
		}
		ask[relationsArguments](t, memory, "s", "create_relations", relationsArguments{relations})
	}
	t.Logf("filled in %.0f s", time.Since(start).Seconds())
}

// Every call, over stdio, to a memory of 100,000 entities and 300,000 relations has a median within its budget. It takes
// minutes to fill: BASALT_MCP_LARGE names the folder of the database, which later runs take over.
func TestCallsOnALargeMemoryKeepWithinTheirBudget(t *testing.T) {
	path := os.Getenv("BASALT_MCP_LARGE")
	if path == "" {
		t.Skip("BASALT_MCP_LARGE names no folder")
	}
	random := seedOf(t)
	fillLarge(t, path, random)
	w := newWords(random)
	entity := func() string { return fmt.Sprint("entity ", random.IntN(largeEntities)) }
	fact := func() map[string]any {
		return map[string]any{"from": entity(), "to": entity(), "relation": "knows", "relationType": "knows"}
	}
	number := 0
	fresh := func() string { number++; return fmt.Sprintf("new %d %d", random.Uint64(), number) }
	type call struct {
		name, profile, tool string
		arguments           func() map[string]any
	}
	calls := []call{
		{"recall", "default", "recall", func() map[string]any { return map[string]any{"query": w.text(5)} }},
		{"recall, one rare word", "default", "recall", func() map[string]any { return map[string]any{"query": "w29000"} }},
		{"context", "default", "context", func() map[string]any { return map[string]any{"query": w.text(5)} }},
		{"neighbors", "default", "neighbors", func() map[string]any { return map[string]any{"entity": entity()} }},
		{"paths", "default", "paths", func() map[string]any { return map[string]any{"from": entity(), "to": entity()} }},
		{"remember", "default", "remember", func() map[string]any {
			return map[string]any{"text": w.text(20) + fresh(), "about": []string{fresh()},
				"facts": []map[string]any{{"from": entity(), "relation": "knows", "to": entity()}}}
		}},
		{"ingest", "default", "ingest", func() map[string]any { return map[string]any{"source": fresh(), "text": w.text(300)} }},
		{"forget, shown", "default", "forget", func() map[string]any { return map[string]any{"sources": []string{"entity/" + entity()}} }},
		{"forget everything, shown", "default", "forget", func() map[string]any { return map[string]any{"everything": true} }},
		{"forget before, shown", "default", "forget", func() map[string]any { return map[string]any{"before": "2020-01-01"} }},
		{"stats", "default", "stats", func() map[string]any { return nil }},
		{"create_entities", "reference", "create_entities", func() map[string]any {
			return map[string]any{"entities": []map[string]any{{"name": fresh(), "entityType": "t", "observations": []string{w.text(10)}}}}
		}},
		{"create_relations", "reference", "create_relations", func() map[string]any {
			r := fact()
			delete(r, "relation")
			return map[string]any{"relations": []map[string]any{r}}
		}},
		{"add_observations", "reference", "add_observations", func() map[string]any {
			return map[string]any{"observations": []map[string]any{{"entityName": entity(), "contents": []string{fresh()}}}}
		}},
		{"delete_entities", "reference", "delete_entities", func() map[string]any { return map[string]any{"entityNames": []string{"entity 99999x"}} }},
		{"delete_observations", "reference", "delete_observations", func() map[string]any {
			return map[string]any{"deletions": []map[string]any{{"entityName": entity(), "observations": []string{"none"}}}}
		}},
		{"delete_relations", "reference", "delete_relations", func() map[string]any {
			r := fact()
			delete(r, "relation")
			return map[string]any{"relations": []map[string]any{r}}
		}},
		{"read_graph", "reference", "read_graph", func() map[string]any { return nil }},
		{"search_nodes, frequent", "reference", "search_nodes", func() map[string]any { return map[string]any{"query": w.text(1)} }},
		{"search_nodes, rare", "reference", "search_nodes", func() map[string]any { return map[string]any{"query": "w29" + fmt.Sprint(100+random.IntN(800))} }},
		{"search_nodes, absent", "reference", "search_nodes", func() map[string]any { return map[string]any{"query": "is nowhere"} }},
		{"search_nodes, short", "reference", "search_nodes", func() map[string]any { return map[string]any{"query": "zq"} }},
		{"open_nodes", "reference", "open_nodes", func() map[string]any { return map[string]any{"names": []string{entity(), entity()}} }},
	}
	clients := map[string]*client{}
	for _, profile := range []string{"default", "reference"} {
		clients[profile] = startClient(t, "--db", path, "--space", "s", "--profile", profile)
		clients[profile].ListTools(context.Background(), nil)
	}
	for _, c := range calls {
		clients[c.profile].must(t, c.tool, c.arguments(), nil)
	}
	for _, c := range calls {
		var times []time.Duration
		before := processorTime(t, clients)
		for range largeCalls {
			arguments := c.arguments()
			start := time.Now()
			if _, err := clients[c.profile].call(c.tool, arguments, nil); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		median := times[len(times)/2]
		used := (processorTime(t, clients) - before) / largeCalls
		t.Logf("%-26s median %6.2f ms, least %6.2f, most %6.2f; processor %6.2f", c.name, ms(median), ms(times[0]), ms(times[len(times)-1]), ms(used))
		if median > callBudget {
			t.Errorf("%s: the median of %.1f ms is over %.0f ms", c.name, ms(median), ms(callBudget))
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// processorTime is what the servers have used, in ticks of 10 ms.
func processorTime(t *testing.T, clients map[string]*client) (used time.Duration) {
	for _, c := range clients {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.command.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			used += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return used
}
