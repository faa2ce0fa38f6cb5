package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tour calls every tool of every profile: here, and by testdata/tour.py with other clients. Each call has what its
// answer must contain.
func TestTheTourCallsEveryTool(t *testing.T) {
	text, err := os.ReadFile("testdata/tour.json")
	if err != nil {
		t.Fatal(err)
	}
	var tour map[string][][3]json.RawMessage
	if err := json.Unmarshal(text, &tour); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(t.TempDir(), "m")
	for profile := range profiles {
		c := startClient(t, "--db", database, "--profile", profile)
		listed, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names, called []string
		for _, tool := range listed.Tools {
			names = append(names, tool.Name)
			if tool.OutputSchema == nil || tool.InputSchema == nil || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil ||
				tool.Annotations.OpenWorldHint == nil || tool.Title == "" || tool.Description == "" {
				t.Errorf("%s: %+v", tool.Name, tool)
			}
		}
		for _, call := range tour[profile] {
			var name, want string
			var arguments map[string]any
			for i, to := range []any{&name, &arguments, &want} {
				if err := json.Unmarshal(call[i], to); err != nil {
					t.Fatal(err)
				}
			}
			if got := c.must(t, name, arguments, nil); !strings.Contains(got, want) {
				t.Errorf("%s gives %s, without %q", name, got, want)
			}
			called = append(called, name)
		}
		slices.Sort(called)
		if !slices.Equal(called, names) {
			t.Errorf("the profile %s has the tools %q, and the tour calls %q", profile, names, called)
		}
	}
}
