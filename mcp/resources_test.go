package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestAddressesAreParsedAsTheyAreWritten(t *testing.T) {
	for _, at := range []address{{}, {space: "a b/c"}, {"ü%", "entities", "x/y?z#"}, {"s", "documents", "."}} {
		if got, ok := parseAddress(at.String()); !ok || got != at {
			t.Errorf("%+v, %s: %+v", at, at, got)
		}
	}
	for _, uri := range []string{"", "basalt://", "basalt://spaces/", "basalt://spacesx", "basalt://spaces/s/entities",
		"basalt://spaces/s/entities/", "basalt://spaces/s/others/n", "basalt://spaces/s/entities/n/m", "basalt://spaces/%zz"} {
		if at, ok := parseAddress(uri); ok {
			t.Errorf("%s: %+v", uri, at)
		}
	}
}

func TestResourcesPromptsAndCompletions(t *testing.T) {
	updated := make(chan string, 100)
	command := serverCommand("--db", filepath.Join(t.TempDir(), "m"), "--space", "a/b")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, request *mcp.ResourceUpdatedNotificationRequest) {
			updated <- request.Params.URI
		},
	}).Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	c := &client{ClientSession: session}
	space := address{space: "a/b"}.String()
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: space}); err != nil {
		t.Fatal(err)
	}
	c.must(t, "remember", map[string]any{"text": "wrote a program", "about": []string{"Ada/Lovelace"}}, nil)
	c.must(t, "ingest", map[string]any{"source": "a.md", "text": "The whole text."}, nil)
	select {
	case uri := <-updated:
		if uri != space {
			t.Error(uri)
		}
	case <-time.After(time.Minute):
		t.Error("the subscriber hears of no change")
	}

	read := func(uri string) (string, error) {
		result, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return "", err
		}
		return result.Contents[0].Text, nil
	}
	for uri, want := range map[string]string{
		spacesURI: `"spaces":["a/b"]`, space: `"entities":1`,
		address{"a/b", "entities", "Ada/Lovelace"}.String(): "wrote a program",
		address{"a/b", "documents", "a.md"}.String():        "The whole text.",
	} {
		if text, err := read(uri); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q %v", uri, text, err)
		}
	}
	c.must(t, "ingest", map[string]any{"source": "a.md", "text": "Another text."}, nil)
	if text, err := read(address{"a/b", "documents", "a.md"}.String()); text != "Another text." {
		t.Error(text, err)
	}
	var shown forgetResult
	c.must(t, "forget", map[string]any{"sources": []string{"doc/a.md"}}, &shown)
	c.must(t, "forget", map[string]any{"sources": []string{"doc/a.md"}, "confirm": shown.Confirm}, nil)
	for _, missing := range []address{{"a/b", "documents", "a.md"}, {"a/b", "entities", "Bob"}, {"c", "entities", "Ada"}, {space: "c"}} {
		if text, err := read(missing.String()); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("%s: %q %v", missing, text, err)
		}
	}

	for topic, want := range map[string]string{"program": "wrote a program", "whales": "Nothing is remembered"} {
		prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "recall", Arguments: map[string]string{"topic": topic}})
		if err != nil || !strings.Contains(prompt.Messages[0].Content.(*mcp.TextContent).Text, want) {
			t.Errorf("%s: %+v %v", topic, prompt, err)
		}
	}
	if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "remember_session"}); err != nil {
		t.Error(err)
	}
	completed, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource",
		URI: spacesURI + "/{space}/entities/{name}"}, Argument: mcp.CompleteParamsArgument{Name: "name", Value: "Ad"}})
	if err != nil || !slices.Equal(completed.Completion.Values, []string{"Ada/Lovelace"}) {
		t.Errorf("%+v %v", completed, err)
	}
}
