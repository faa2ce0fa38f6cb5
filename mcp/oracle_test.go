package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Random calls of the nine tools give what the reference memory server gives. It runs where BASALT_MCP_ORACLE names
// that server's index.js (make test-mcp-oracle).
func TestTheReferenceServerAgrees(t *testing.T) {
	script := os.Getenv("BASALT_MCP_ORACLE")
	if script == "" {
		t.Skip("BASALT_MCP_ORACLE is not set: make test-mcp-oracle")
	}
	random := seedOf(t)
	oracle := exec.Command("node", script)
	oracle.Env = append(os.Environ(), "MEMORY_FILE_PATH="+filepath.Join(t.TempDir(), "memory.jsonl"))
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(
		context.Background(), &mcp.CommandTransport{Command: oracle}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	theirs := &client{ClientSession: session}
	ours := startClient(t, "--db", filepath.Join(t.TempDir(), "m"), "--profile", "reference")

	compareTools(t, ours, theirs)
	names := []string{"Ada", "ada", "Grace Hopper", "Z\u00fcrich", "x\"y", "a b", "\u4e2d\u6587", "Q"}
	name := func() string { return names[random.IntN(len(names))] }
	text := func() string { return fmt.Sprint(name(), " ", random.IntN(5)) }
	relation := func() map[string]any { return map[string]any{"from": name(), "to": name(), "relationType": name()} }
	calls := 0
	for range 600 {
		var tool string
		var arguments map[string]any
		reads := false
		switch random.IntN(10) {
		case 0, 1:
			tool, arguments = "create_entities", map[string]any{"entities": []map[string]any{
				{"name": name(), "entityType": text(), "observations": []string{text(), text()}}}}
		case 2, 3:
			tool, arguments = "create_relations", map[string]any{"relations": []map[string]any{relation()}}
		case 4:
			tool, arguments = "add_observations", map[string]any{"observations": []map[string]any{
				{"entityName": name(), "contents": []string{text() + "!"}}}}
		case 5:
			tool, arguments = "delete_observations", map[string]any{"deletions": []map[string]any{
				{"entityName": name(), "observations": []string{text(), text() + "!"}}}}
		case 6:
			tool, arguments = "delete_relations", map[string]any{"relations": []map[string]any{relation(), relation()}}
		case 7:
			tool, arguments = "search_nodes", map[string]any{"query": text()[:1+random.IntN(2)]}
			reads = true
		case 8:
			tool, arguments = "open_nodes", map[string]any{"names": []string{name(), name()}}
			reads = true
		default:
			tool, arguments = "read_graph", map[string]any{}
			reads = true
			if random.IntN(3) == 0 {
				tool, arguments, reads = "delete_entities", map[string]any{"entityNames": []string{name()}}, false
			}
		}
		var want, got json.RawMessage
		_, theirFailure := theirs.call(tool, arguments, &want)
		if reads {
			arguments["max_tokens"] = all
		}
		_, ourFailure := ours.call(tool, arguments, &got)
		if (theirFailure == nil) != (ourFailure == nil) {
			t.Fatalf("call %d, %s %v: ours %v, theirs %v", calls, tool, arguments, ourFailure, theirFailure)
		}
		if !sameAnswer(t, got, want, reads) {
			t.Fatalf("call %d, %s %v:\nours   %s\ntheirs %s", calls, tool, arguments, got, want)
		}
		calls++
	}
	t.Logf("%d calls gave equal answers", calls)
}

// sameAnswer compares results; those of reads have an order of their own.
func sameAnswer(t *testing.T, got, want json.RawMessage, reads bool) bool {
	if reads {
		var a, b graphResult
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil {
			return false
		}
		return equal(sorted(a), sorted(b))
	}
	var a, b any
	json.Unmarshal(got, &a)
	json.Unmarshal(want, &b)
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// compareTools finds each of their tools among ours, with their arguments and results.
func compareTools(t *testing.T, ours, theirs *client) {
	list := func(c *client) map[string]*mcp.Tool {
		listed, err := c.ListTools(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		tools := map[string]*mcp.Tool{}
		for _, tool := range listed.Tools {
			tools[tool.Name] = tool
		}
		return tools
	}
	members := func(schema any, part string) map[string]any {
		parts, _ := schema.(map[string]any)[part].(map[string]any)
		return parts
	}
	our, their := list(ours), list(theirs)
	if len(our) != len(their) {
		t.Errorf("%d tools, theirs are %d", len(our), len(their))
	}
	for name, tool := range their {
		if our[name] == nil {
			t.Errorf("we have no %s", name)
			continue
		}
		for argument := range members(tool.InputSchema, "properties") {
			if members(our[name].InputSchema, "properties")[argument] == nil {
				t.Errorf("our %s does not take %s", name, argument)
			}
		}
		for result := range members(tool.OutputSchema, "properties") {
			if members(our[name].OutputSchema, "properties")[result] == nil {
				t.Errorf("our %s does not give %s", name, result)
			}
		}
		if a, b := our[name].Annotations, tool.Annotations; a.ReadOnlyHint != b.ReadOnlyHint ||
			*a.DestructiveHint != *b.DestructiveHint || a.IdempotentHint != b.IdempotentHint {
			t.Errorf("annotations of %s: ours %+v, theirs %+v", name, a, b)
		}
	}
}
