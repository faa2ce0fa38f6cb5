package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official conformance suite, which BASALT_MCP_CONFORMANCE names, finds all that a revision of the protocol
// requires: without sessions as basalt-mcp serves it, and with sessions for what 2025-11-25 has only there.
func TestTheConformanceSuitePasses(t *testing.T) {
	suite := os.Getenv("BASALT_MCP_CONFORMANCE")
	if suite == "" {
		t.Skip("BASALT_MCP_CONFORMANCE names no suite")
	}
	for revision, stateless := range map[string]bool{"2026-07-28": true, "2025-11-25": false} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			server := conformanceServer(t, stateless)
			command := exec.Command(suite, "server", "--url", server.URL+"/mcp", "--requirements", revision, "--timeout", "60000")
			command.Dir = t.TempDir()
			output, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, output)
			}
			_, summary, _ := strings.Cut(string(output), "=== SUMMARY ===")
			t.Log(summary)
		})
	}
}

// conformanceServer serves the default profile and what the suite expects beside, as serveHTTP does. The suite knows no
// tokens: they are added on the way.
func conformanceServer(t *testing.T, stateless bool) *httptest.Server {
	server, err := newServer("default", "conformance", openMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	addFixture(server)
	web := httptest.NewUnstartedServer(nil)
	s := &settings{token: "secret", origins: "http://" + web.Listener.Addr().String()}
	handler := httpHandler(s, server, &mcp.StreamableHTTPOptions{Stateless: stateless})
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer secret")
		handler.ServeHTTP(w, r)
	})
	web.Start()
	t.Cleanup(web.Close)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() {
		for ctx.Err() == nil {
			server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://watched-resource"})
			time.Sleep(time.Second)
		}
	}()
	return web
}
