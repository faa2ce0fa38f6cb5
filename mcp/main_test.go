package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test program is also the server: a child process with this variable runs main.
const asServer = "BASALT_MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// client is a client of a server in a process of its own.
type client struct {
	*mcp.ClientSession
	command *exec.Cmd
	stderr  *bytes.Buffer
}

func serverCommand(arguments ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), asServer+"=1")
	return command
}

func startClient(t testing.TB, arguments ...string) *client {
	t.Helper()
	command := serverCommand(arguments...)
	c := &client{command: command, stderr: &bytes.Buffer{}}
	command.Stderr = c.stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(
		context.Background(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, c.stderr)
	}
	c.ClientSession = session
	t.Cleanup(func() { session.Close() })
	return c
}

// call calls a tool, whose structured result goes to `result`; it gives what is shown.
func (c *client) call(tool string, arguments map[string]any, result any) (string, error) {
	answer, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	var text string
	for _, content := range answer.Content {
		text += content.(*mcp.TextContent).Text
	}
	if answer.IsError {
		return "", fmt.Errorf("%s", text)
	}
	if result == nil {
		return text, nil
	}
	structured, err := json.Marshal(answer.StructuredContent)
	if err != nil {
		return "", err
	}
	return text, json.Unmarshal(structured, result)
}

func (c *client) must(t testing.TB, tool string, arguments map[string]any, result any) string {
	t.Helper()
	text, err := c.call(tool, arguments, result)
	if err != nil {
		t.Fatalf("%s: %v %s", tool, err, c.stderr)
	}
	return text
}

func TestATourOverStdio(t *testing.T) {
	c := startClient(t, "--db", filepath.Join(t.TempDir(), "m"), "--space", "tour")
	tools, err := c.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.OutputSchema == nil || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil {
			t.Errorf("%s has no output schema or annotations", tool.Name)
		}
		if tool.Annotations.ReadOnlyHint == *tool.Annotations.DestructiveHint && tool.Name == "forget" {
			t.Errorf("%s: %+v", tool.Name, tool.Annotations)
		}
		text, _ := json.Marshal(tool)
		if !strings.Contains(string(text), `"space"`) || strings.Contains(string(text), `"null"`) {
			t.Errorf("the schemas of %s: %s", tool.Name, text)
		}
	}
	if got := strings.Join(names, " "); got != "context forget ingest neighbors paths recall remember stats" {
		t.Error(got)
	}

	var remembered rememberResult
	arguments := map[string]any{"text": "Ada Lovelace wrote the first program for the Analytical Engine.",
		"about": []string{"Ada Lovelace"}, "type": "person",
		"facts": []map[string]any{{"from": "Ada Lovelace", "relation": "worked_with", "to": "Charles Babbage"},
			{"from": "Charles Babbage", "relation": "designed", "to": "Analytical Engine"}}}
	c.must(t, "remember", arguments, &remembered)
	if len(remembered.NewEntities) != 3 || remembered.NewFacts != 2 || remembered.AlreadyKnown {
		t.Errorf("%+v", remembered)
	}
	c.must(t, "remember", arguments, &remembered)
	if !remembered.AlreadyKnown || len(remembered.NewEntities) != 0 {
		t.Errorf("%+v", remembered)
	}
	c.must(t, "remember", map[string]any{"text": "The meeting is moved to Tuesday."}, nil)

	var recalled recallResult
	c.must(t, "recall", map[string]any{"query": "who wrote programs for the engine"}, &recalled)
	if len(recalled.Hits) == 0 || recalled.Hits[0].Source != "entity/Ada Lovelace" || recalled.Hits[0].Why.Words <= 0 ||
		recalled.Hits[0].Recorded == "" || len(recalled.Hits[0].Facts) != 1 {
		t.Fatalf("%+v", recalled)
	}
	text := c.must(t, "context", map[string]any{"query": "first program"}, nil)
	if !strings.Contains(text, "Ada Lovelace -worked_with-> Charles Babbage") || !strings.Contains(text, "related: Charles Babbage") {
		t.Error(text)
	}
	var near neighborsResult
	c.must(t, "neighbors", map[string]any{"entity": "Charles Babbage", "direction": "out"}, &near)
	if len(near.Relations) != 1 || near.Relations[0].To != "Analytical Engine" || near.Relations[0].Since == "" {
		t.Errorf("%+v", near)
	}
	var ways pathsResult
	c.must(t, "paths", map[string]any{"from": "Analytical Engine", "to": "Ada Lovelace"}, &ways)
	if len(ways.Paths) != 1 || ways.Paths[0].Facts[0].String() != "Charles Babbage -designed-> Analytical Engine" {
		t.Errorf("%+v", ways)
	}

	document := strings.Repeat("The loom weaves patterns by punched cards. ", 200) + "Jacquard invented it."
	c.must(t, "ingest", map[string]any{"source": "loom.md", "text": document}, nil)
	c.must(t, "recall", map[string]any{"query": "Jacquard invented", "max_tokens": 100}, &recalled)
	if len(recalled.Hits) == 0 || recalled.Hits[0].Source != "doc/loom.md" {
		t.Errorf("%+v", recalled)
	}
	hit := recalled.Hits[0]
	if hit.Begin == 0 || hit.End > len(document) {
		t.Errorf("%+v", hit)
	}

	if _, err := c.call("neighbors", map[string]any{"entity": "Nobody"}, nil); err == nil || !strings.Contains(err.Error(), "recall finds") {
		t.Error(err)
	}
	if _, err := c.call("recall", map[string]any{}, nil); err == nil {
		t.Error("a recall without a query")
	}
	var counted statsResult
	c.must(t, "stats", nil, &counted)
	if counted.Entities != 3 || counted.Notes != 1 || counted.Documents != 1 || counted.Relations != 2 || len(counted.Spaces) != 1 {
		t.Errorf("%+v", counted)
	}
	c.must(t, "stats", map[string]any{"space": "another"}, &counted)
	if counted.Entities != 0 || len(counted.Spaces) != 1 {
		t.Errorf("a read has made a space: %+v", counted)
	}
}

func TestAFactThatIsReplacedStaysAsHistory(t *testing.T) {
	c := startClient(t, "--db", filepath.Join(t.TempDir(), "m"))
	fact := func(to string) map[string]any {
		return map[string]any{"facts": []map[string]any{{"from": "Ada", "relation": "lives_in", "to": to, "replaces": true}}}
	}
	c.must(t, "remember", fact("London"), nil)
	time.Sleep(1100 * time.Millisecond) // as_of has seconds.
	between := time.Now().UTC().Format(time.RFC3339)
	time.Sleep(1100 * time.Millisecond)
	var remembered rememberResult
	c.must(t, "remember", fact("Paris"), &remembered)
	if remembered.EndedFacts != 1 {
		t.Errorf("%+v", remembered)
	}
	for asOf, to := range map[string]string{"": "Paris", between: "London"} {
		var near neighborsResult
		c.must(t, "neighbors", map[string]any{"entity": "Ada", "as_of": asOf}, &near)
		if len(near.Relations) != 1 || near.Relations[0].To != to || (near.Relations[0].Until != "") != (to == "London") {
			t.Errorf("as of %q: %+v", asOf, near)
		}
	}
}

func TestForgetShowsAndNeedsAConfirmation(t *testing.T) {
	c := startClient(t, "--db", filepath.Join(t.TempDir(), "m"))
	for i := range 30 {
		c.must(t, "remember", map[string]any{"text": fmt.Sprintf("note number %d about whales", i)}, nil)
	}
	c.must(t, "remember", map[string]any{"text": "whales sing", "about": []string{"whale"}}, nil)
	var shown, removed forgetResult
	all := map[string]any{"everything": true, "limit": 5}
	c.must(t, "forget", all, &shown)
	if shown.Removed || shown.Count != 31 || len(shown.Sources) != 5 || shown.NextCursor == "" || shown.LeftOut == "" {
		t.Fatalf("%+v", shown)
	}
	// One more makes the confirmation void.
	c.must(t, "remember", map[string]any{"text": "krill"}, nil)
	all["confirm"] = shown.Confirm
	c.must(t, "forget", all, &removed)
	if removed.Removed || removed.Count != 32 || removed.Confirm == shown.Confirm {
		t.Fatalf("%+v", removed)
	}
	all["confirm"] = removed.Confirm
	c.must(t, "forget", all, &removed)
	if !removed.Removed {
		t.Fatalf("%+v", removed)
	}
	var recalled recallResult
	c.must(t, "recall", map[string]any{"query": "whales note krill"}, &recalled)
	var counted statsResult
	c.must(t, "stats", nil, &counted)
	if len(recalled.Hits) != 0 || counted.Entities != 0 || counted.Notes != 0 {
		t.Errorf("%+v %+v", recalled, counted)
	}
}

// Two processes that use one database at once, through the reference tools: all that was acknowledged is there.
func TestTwoProcessesCreateAtTheSameTime(t *testing.T) {
	database := filepath.Join(t.TempDir(), "m")
	const each = 1000
	var clients [2]*client
	var group sync.WaitGroup
	for p := range clients {
		clients[p] = startClient(t, "--db", database, "--space", "shared", "--profile", "reference")
		for part := range 4 {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := part; i < each; i += 4 {
					_, err := clients[p].call("create_entities", map[string]any{"entities": []map[string]any{
						{"name": fmt.Sprintf("e%d-%d", p, i), "entityType": "t", "observations": []string{"o"}}}}, nil)
					if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
	}
	group.Wait()
	for _, c := range clients {
		var graph graphResult
		c.must(t, "read_graph", map[string]any{"max_tokens": 1 << 30}, &graph)
		if len(graph.Entities) != len(clients)*each {
			t.Errorf("%d entities of %d", len(graph.Entities), len(clients)*each)
		}
	}
}

// Two processes write; the owner of the database is killed, the other takes over, and a new one comes in its place, and
// so on. The other sees no error and no change done twice, and all that was acknowledged is there.
func TestAKilledOwnerLosesNothing(t *testing.T) {
	arguments := []string{"--db", filepath.Join(t.TempDir(), "m"), "--space", "shared", "--profile", "reference"}
	const kills = 8
	var acknowledged sync.Map
	started := 0
	write := func(c *client, number int, stop chan struct{}, killed *atomic.Bool) {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprintf("%d/%d", number, i)
			var result entitiesArguments
			_, err := c.call("create_entities", map[string]any{"entities": []map[string]any{
				{"name": name, "entityType": "t", "observations": []string{"o"}}}}, &result)
			if killed.Load() {
				return
			}
			if err != nil || len(result.Entities) != 1 {
				t.Errorf("%s: %v %+v", name, err, result)
				return
			}
			acknowledged.Store(name, true)
		}
	}
	type writer struct {
		client     *client
		stop, done chan struct{}
		killed     atomic.Bool
	}
	start := func() *writer {
		started++
		number := started
		w := &writer{client: startClient(t, arguments...), stop: make(chan struct{}), done: make(chan struct{})}
		w.client.must(t, "read_graph", map[string]any{"limit": 1}, nil)
		go func() {
			defer close(w.done)
			write(w.client, number, w.stop, &w.killed)
		}()
		return w
	}
	writers := [2]*writer{start(), start()}
	for kill := range kills {
		time.Sleep(time.Duration(20+rand.IntN(80)) * time.Millisecond)
		owner := writers[kill%2]
		owner.killed.Store(true)
		owner.client.command.Process.Kill()
		<-owner.done
		writers[kill%2] = start()
	}
	for _, w := range writers {
		close(w.stop)
		<-w.done
		w.killed.Store(true)
		w.client.command.Process.Kill()
	}
	var graph graphResult
	startClient(t, arguments...).must(t, "read_graph", map[string]any{"max_tokens": 1 << 30}, &graph)
	var counted statsResult
	startClient(t, "--db", arguments[1], "--space", "shared").must(t, "stats", nil, &counted)
	if counted.Entities != uint64(len(graph.Entities)) {
		t.Errorf("stats counts %d entities of %d", counted.Entities, len(graph.Entities))
	}
	there := map[string]bool{}
	for _, entity := range graph.Entities {
		there[entity.Name] = true
	}
	count := 0
	acknowledged.Range(func(name, _ any) bool {
		count++
		if !there[name.(string)] {
			t.Errorf("%s was acknowledged and is lost", name)
		}
		return true
	})
	if count < kills {
		t.Errorf("only %d changes beside %d kills", count, kills)
	}
	t.Logf("%d changes beside %d kills", count, kills)
}

// The command that README.md gives to a client starts the server that scripts/test_mcp has built.
func TestTheCommandOfTheREADMEStartsAServer(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root + "/build/mcp/basalt-mcp"); err != nil {
		t.Skip("build/mcp/basalt-mcp is not built")
	}
	_, command, found := strings.Cut(string(readme), "claude mcp add basalt -- ")
	command, _, _ = strings.Cut(command, "   #")
	if !found || strings.Contains(command, "\n") {
		t.Fatalf("README.md has no command for a client: %q", command)
	}
	server := exec.Command("sh", "-c", "exec "+command)
	server.Dir = root
	server.Env = append(os.Environ(), "PWD="+root, "XDG_DATA_HOME="+t.TempDir())
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(
		t.Context(), &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	(&client{ClientSession: session}).must(t, "remember", map[string]any{"text": "The README is true."}, nil)
}

// A process that ends in order gives the database to the other.
func TestTheOwnerLeaves(t *testing.T) {
	arguments := []string{"--db", filepath.Join(t.TempDir(), "m"), "--space", "shared"}
	first, second := startClient(t, arguments...), startClient(t, arguments...)
	first.must(t, "remember", map[string]any{"text": "of the first"}, nil)
	second.must(t, "remember", map[string]any{"text": "of the second"}, nil)
	first.Close()
	var counted statsResult
	second.must(t, "stats", nil, &counted)
	if counted.Notes != 2 {
		t.Errorf("%+v", counted)
	}
}
