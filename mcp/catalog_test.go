package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Random changes and walks: a catalog is what a map is, from any name to any other, and leaves out no record with the
// part that is looked for.
func TestACatalogIsAnOrderedMap(t *testing.T) {
	random := seedOf(t)
	model := map[string]string{}
	c := &catalog{}
	shared := 0 // Catalogs that share the text of the one before.
	name := func() string { return fmt.Sprint("n", random.IntN(3*changedMax)) }
	for step := range 400 {
		var changes []record
		for range random.IntN(20) {
			changed := record{[]byte(name()), nil}
			if random.IntN(4) > 0 {
				changed.value = fmt.Appendf(nil, "value %d of %s", random.IntN(100), changed.name)
				model[string(changed.name)] = string(changed.value)
			} else {
				delete(model, string(changed.name))
			}
			changes = append(changes, changed)
		}
		before := c
		if c = c.with(changes); len(c.ends) == len(before.ends) {
			shared++
		}
		if step%10 > 0 {
			continue
		}
		from, to, part := name(), name(), fmt.Sprint("value ", random.IntN(100))
		if random.IntN(3) == 0 {
			from, to, part = "", "", ""
		}
		var want, got []string
		for _, key := range slices.Sorted(maps.Keys(model)) {
			if key >= from && (to == "" || key < to) && strings.Contains(model[key], part) {
				want = append(want, key+"="+model[key])
			}
		}
		c.each(from, to, []byte(part), func(r record) bool {
			if bytes.Contains(r.value, []byte(part)) {
				got = append(got, string(r.name)+"="+string(r.value))
			}
			return true
		})
		if !slices.Equal(got, want) {
			t.Fatalf("step %d, from %q to %q with %q: got %q, want %q", step, from, to, part, got, want)
		}
	}
	if shared == 400 || len(c.ends) == 0 {
		t.Error("no catalog was made whole")
	}
}

// A search gives the same from memory, from the database, and after a change.
func TestSearchesInMemoryAndInTheDatabaseAgree(t *testing.T) {
	memory := openMemory(t)
	create := func(names ...string) {
		var entities []Entity
		for _, name := range names {
			entities = append(entities, Entity{name, "t", []string{"about " + name}})
		}
		ask[entitiesArguments](t, memory, "s", "create_entities", entitiesArguments{entities})
	}
	search := func(query string) string {
		var names []string
		for _, entity := range ask[graphResult](t, memory, "s", "search_nodes", searchArguments{Query: query}).Entities {
			names = append(names, entity.Name)
		}
		return strings.Join(names, " ")
	}
	create("Ada", "Babbage", "Ada's engine")
	memory.mu.Lock() // A change is under way: the search does not wait for it.
	fromDatabase := search("ada")
	memory.mu.Unlock()
	s, _ := memory.space("s", false)
	if s.catalog.Load() != nil {
		t.Error("the catalog was loaded beside a change")
	}
	fromMemory := search("ada")
	if fromDatabase != "Ada Ada's engine" || fromMemory != fromDatabase || s.catalog.Load() == nil {
		t.Errorf("%q, %q", fromDatabase, fromMemory)
	}
	create("Adam")
	ask[successResult](t, memory, "s", "delete_entities", namesArguments{[]string{"Ada"}})
	if got := search("ADA"); got != "Ada's engine Adam" {
		t.Error(got)
	}
	many := make([]string, changedMax+1)
	for i := range many {
		many[i] = fmt.Sprint("Bob ", i)
	}
	create(many...)
	if got := search("bob 1000"); got != "Bob 1000" {
		t.Error(got)
	}
	memory.keepCatalog(s, nil) // As if it were too large.
	if got := search("ADA"); got != "Ada's engine Adam" || s.catalog.Load() != nil {
		t.Error(got)
	}
}
