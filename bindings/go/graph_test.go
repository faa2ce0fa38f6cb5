package basalt

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"
)

func openGraph(t *testing.T) (*Store, *Graph) {
	t.Helper()
	store, err := Open(":memory:", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	graph, err := store.OpenGraph("knowledge", false)
	if err != nil {
		t.Fatal(err)
	}
	return store, graph
}

func TestPropertiesOfAllTypesComeBack(t *testing.T) {
	_, graph := openGraph(t)
	put := Node{ID: "ada", Labels: []string{"Person"}, Properties: Properties{
		"nothing": nil, "yes": true, "born": int64(1815), "whole": 2.0, "tiny": 5e-324, "inf": math.Inf(-1),
		"least": int64(math.MinInt64), "name": "Ada \"L\"\n\u00e9", "raw": []byte{0, 255},
		"at": time.UnixMilli(-5), "list": []any{int64(1), []any{"x", nil}}, "none": []any{}}}
	if err := graph.PutNode(put); err != nil {
		t.Fatal(err)
	}
	got, err := graph.GetNode("ada")
	if err != nil || !reflect.DeepEqual(*got, put) {
		t.Fatalf("%v: got %#v, put %#v", err, got, put)
	}
	absent, err := graph.GetNode("grace")
	if err != nil || absent != nil {
		t.Fatal(absent, err)
	}
}

func TestEdgesPagesAndPaths(t *testing.T) {
	_, graph := openGraph(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		if err := graph.PutNode(Node{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	content := EdgeContent{Weight: 0.5, ValidFrom: time.UnixMilli(1000), ValidTo: time.UnixMilli(2000),
		Properties: Properties{"why": "because"}}
	for _, edge := range []Edge{{From: "a", Type: "knows", To: "b"}, {From: "b", Type: "knows", To: "c"},
		{From: "a", Type: "made", To: "d"}, {From: "a", Type: "made", To: "d", Discriminator: "twice"}} {
		if err := graph.PutEdge(edge, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := graph.PutEdge(Edge{From: "a", Type: "knows", To: "nobody"}, content); !errors.Is(err, NotFound) {
		t.Fatal(err)
	}
	got, err := graph.GetEdge(Edge{From: "a", Type: "knows", To: "b"})
	if err != nil || !reflect.DeepEqual(*got, content) {
		t.Fatalf("%v: %#v", err, got)
	}
	var seen []Neighbor
	for from, pages := "", 0; ; pages++ {
		page, next, err := graph.Neighbors("a", EdgeFilter{Direction: Both}, 1, from)
		if err != nil || len(page) > 1 || pages > 3 {
			t.Fatal(page, err)
		}
		seen = append(seen, page...)
		if from = next; next == "" {
			break
		}
	}
	if len(seen) != 3 || seen[2].Discriminator != "twice" || seen[0].Direction != "out" {
		t.Fatalf("%v", seen)
	}
	made, _, err := graph.Neighbors("a", EdgeFilter{Types: []string{"made", "unknown"}}, 10, "")
	if err != nil || len(made) != 2 {
		t.Fatal(made, err)
	}
	late, _, err := graph.Neighbors("a", EdgeFilter{AsOf: time.UnixMilli(2000)}, 10, "")
	if err != nil || len(late) != 0 {
		t.Fatal(late, err)
	}
	paths, truncated, err := graph.Paths("a", "c", 3, 5, EdgeFilter{})
	if err != nil || truncated || len(paths) != 1 || !reflect.DeepEqual(paths[0].Nodes, []string{"a", "b", "c"}) {
		t.Fatal(paths, err)
	}
	ranked, _, err := graph.PageRank([]string{"a", "nobody"}, EdgeFilter{Direction: Both}, 2)
	if err != nil || len(ranked) != 2 || ranked[0].ID != "a" {
		t.Fatal(ranked, err)
	}
	if found, err := graph.RemoveEdge(Edge{From: "a", Type: "made", To: "d"}); !found || err != nil {
		t.Fatal(found, err)
	}
	if found, err := graph.RemoveNode("b"); !found || err != nil {
		t.Fatal(found, err)
	}
	stats, err := graph.Stats()
	if err != nil || stats.Nodes != 3 || stats.Edges != 1 {
		t.Fatal(stats, err)
	}
}

func TestGraphAndCorpusInOneTransaction(t *testing.T) {
	store, graph := openGraph(t)
	corpus, err := store.OpenCorpus("texts", CorpusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	change := func(result error) error {
		return store.Update(context.Background(), func(tx *Tx) error {
			if err := graph.In(tx).PutNode(Node{ID: "ada"}); err != nil {
				return err
			}
			if node, err := graph.In(tx).GetNode("ada"); node == nil || err != nil {
				t.Error(node, err)
			}
			ingested, err := corpus.In(tx).Ingest(
				Document{Source: "note", Title: "Ada Lovelace", Text: "Ada wrote about the Analytical Engine."})
			if err == nil && ingested.Passages != 1 {
				t.Error(ingested)
			}
			return errors.Join(err, result)
		})
	}
	if err := change(refused); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if node, err := graph.GetNode("ada"); node != nil || err != nil {
		t.Fatal(node, err)
	}
	if err := change(nil); err != nil {
		t.Fatal(err)
	}
	if err := corpus.Finish(); err != nil {
		t.Fatal(err)
	}
	found, _, err := corpus.Retrieve("analytical engine", RetrieveOptions{Explain: true})
	if err != nil || len(found) != 1 || found[0].Source != "note" || found[0].Parts.BM25 == nil {
		t.Fatal(found, err)
	}
	if was, err := corpus.Forget("note"); !was || err != nil {
		t.Fatal(was, err)
	}
	if found, _, err := corpus.Retrieve("analytical engine", RetrieveOptions{}); len(found) != 0 || err != nil {
		t.Fatal(found, err)
	}
	if _, err := store.OpenGraph("absent", true); !errors.Is(err, NotFound) {
		t.Fatal(err)
	}
	store.Close()
	if err := graph.PutNode(Node{ID: "late"}); !errors.Is(err, FailedPrecondition) {
		t.Fatal(err)
	}
}

func TestATransactionKeepsWithinItsMemory(t *testing.T) {
	store, _ := openGraph(t)
	for limit, fits := range map[uint64]bool{1 << 20: false, 0: true} {
		tx, err := store.Begin(TxOptions{MemoryLimit: limit})
		if err != nil {
			t.Fatal(err)
		}
		err = tx.Put([]byte("k"), make([]byte, 1<<20))
		if err == nil {
			err = tx.Commit()
		}
		if (err == nil) != fits || !fits && !errors.Is(err, ResourceExhausted) {
			t.Errorf("%d: %v", limit, err)
		}
		tx.Rollback()
	}
}
