package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Random changes of two spaces: kv_get and kv_scan give what a map has.
func TestKeysAndValuesAreAMap(t *testing.T) {
	random := seedOf(t)
	memory := openMemory(t)
	models := map[string]map[string]string{"a": {}, "b": {}}
	for step := range 300 {
		space := []string{"a", "b"}[random.IntN(2)]
		model := models[space]
		key := fmt.Sprint("k", random.IntN(30))
		switch random.IntN(3) {
		case 0:
			value := strings.Repeat(fmt.Sprint(step, " "), random.IntN(40))
			ask[kvDone](t, memory, space, "kv_set", kvSetArguments{Key: key, Value: value})
			model[key] = value
		case 1:
			_, there := model[key]
			if done := ask[kvDone](t, memory, space, "kv_delete", kvKey{key}); done.Success != there {
				t.Fatalf("step %d: %+v", step, done)
			}
			delete(model, key)
		case 2:
			want, there := model[key]
			got := ask[kvValue](t, memory, space, "kv_get", kvKey{key})
			if got.Found != there || there && *got.Value != want || !there && got.Value != nil {
				t.Fatalf("step %d: %+v", step, got)
			}
		}
		if step%20 > 0 {
			continue
		}
		limits := Limits{Limit: 1 + random.IntN(5), MaxTokens: 200}
		var pairs []string
		for {
			page := ask[kvScanned](t, memory, space, "kv_scan", kvScanArguments{Prefix: "k", Limits: limits})
			for _, pair := range page.Pairs {
				pairs = append(pairs, pair.Key+"="+pair.Value)
			}
			if limits.Cursor = page.NextCursor; limits.Cursor == "" {
				break
			}
		}
		var want []string
		for _, key := range slices.Sorted(maps.Keys(model)) {
			want = append(want, key+"="+model[key])
		}
		if !slices.Equal(pairs, want) {
			t.Fatalf("step %d: %q, not %q", step, pairs, want)
		}
	}
}

func TestValuesExpireAndAreBounded(t *testing.T) {
	memory := openMemory(t)
	ask[kvDone](t, memory, "s", "kv_set", kvSetArguments{Key: "k", Value: "v", TTLMs: 1})
	ask[kvDone](t, memory, "s", "kv_set", kvSetArguments{Key: "large", Value: strings.Repeat("v", valueBytesMax)})
	for start := time.Now(); ask[kvValue](t, memory, "s", "kv_get", kvKey{"k"}).Found; {
		if time.Since(start) > time.Minute {
			t.Fatal("the key does not expire")
		}
		time.Sleep(time.Millisecond)
	}
	page := ask[kvScanned](t, memory, "s", "kv_scan", kvScanArguments{})
	if len(page.Pairs) != 1 || len(page.Pairs[0].Value) > maxTokensDefault*bytesPerToken || !strings.Contains(page.LeftOut, "kv_get") {
		t.Errorf("%d pairs, %q", len(page.Pairs), page.LeftOut)
	}
	if got := ask[kvValue](t, memory, "s", "kv_get", kvKey{"large"}); len(*got.Value) != valueBytesMax {
		t.Error(len(*got.Value))
	}
	for _, arguments := range []string{`{"key":"","value":"v"}`, `{"key":"k","value":"v","ttl_ms":-1}`,
		fmt.Sprintf(`{"key":"k","value":%q}`, strings.Repeat("v", valueBytesMax+1))} {
		if err := callTool(t.Context(), memory, "s", "kv_set", json.RawMessage(arguments), &kvDone{}); err == nil {
			t.Errorf("%.50s", arguments)
		}
	}
}

func TestTheToolsOfMinKV(t *testing.T) {
	memory := openMemory(t)
	call := func(tool, arguments string) string {
		t.Helper()
		return string(ask[json.RawMessage](t, memory, "s", tool, json.RawMessage(arguments)))
	}
	call("vector_insert", `{"key":"loom","text":"The loom weaves patterns by punched cards.","metadata":{"year":1804}}`)
	call("vector_insert", `{"key":"engine","text":"The engine weaves algebraical patterns."}`)
	got := call("vector_search", `{"query":"punched cards","top_k":1}`)
	if !strings.HasPrefix(got, `{"results":[{"rank":1,"key":"loom","score":`) || !strings.Contains(got, `"metadata":{"year":1804}`) {
		t.Error(got)
	}
	call("vector_insert", `{"key":"loom","text":"The loom weaves by punched cards."}`)
	if got := call("vector_search", `{"query":"punched cards"}`); strings.Contains(got, "1804") {
		t.Error("the metadata of a text that was replaced: ", got)
	}
	call("graph_add_node", `{"node_id":"Ada","properties_json":"{\"born\": 1815}","text":"wrote the first program"}`)
	for _, weight := range []string{"1", "0.5"} {
		got := call("graph_add_edge", `{"src_id":"Ada","dst_id":"Babbage","label":"knows","weight":`+weight+`}`)
		if got != `{"success":true,"src_id":"Ada","dst_id":"Babbage","label":"knows"}` {
			t.Error(got)
		}
	}
	call("graph_add_edge", `{"src_id":"Babbage","dst_id":"Engine","label":"designed"}`)
	for hops, nodes := range []string{"Ada", "Ada Babbage", "Ada Babbage Engine"} {
		found := ask[ragResult](t, memory, "s", "graph_rag_query", ragArguments{Query: "first program", HopDepth: &hops})
		var names []string
		for _, node := range found.Nodes {
			names = append(names, node.NodeID)
		}
		if strings.Join(names, " ") != nodes || found.Nodes[0].PropertiesJSON != `{"born": 1815}` || found.NodeCount != hops+1 {
			t.Errorf("%d hops: %+v", hops, found)
		}
	}
	call("kv_set", `{"key":"k","value":"v"}`)
	for arguments, want := range map[string]string{
		`{"key":"k"}`: `{"type":"exact_match","key":"k","value":"v","found":true,"results":[{"key":"k","value":"v"}]}`,
		`{"key":"n"}`: `{"found":false,"reason":"there is no such key","results":[]}`,
	} {
		if got := call("memory_recall", arguments); got != want {
			t.Errorf("%s: %s", arguments, got)
		}
	}
	if got := call("memory_recall", `{"key":"n","semantic_query":"algebraical"}`); !strings.HasPrefix(got,
		`{"type":"semantic_search","query":"algebraical","found":true,"results":[{"key":"engine","score":`) {
		t.Error(got)
	}
	if got := call("kv_get", `{"key":"n"}`); got != `{"found":false,"key":"n","value":null}` {
		t.Error(got)
	}
	countsAreTrue(t, memory, "s")
}
