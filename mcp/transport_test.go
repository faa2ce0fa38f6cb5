package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// withToken adds the bearer token to requests.
type withToken struct{ token string }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return http.DefaultTransport.RoundTrip(r)
}

func TestHTTPNeedsTheTokenAndAnAllowedOrigin(t *testing.T) {
	server, err := newServer("default", "web", openMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(httpHandler(&settings{token: "secret", origins: "https://a.example"}, server,
		&mcp.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for _, c := range []struct {
		token, origin string
		status        int
	}{
		{"", "", 401}, {"secre", "", 401}, {"secret", "https://b.example", 403}, {"", "https://a.example", 401},
		{"secret", "", 200}, {"secret", "https://a.example", 200},
	} {
		request, _ := http.NewRequest("POST", web.URL+"/mcp", strings.NewReader(ping))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if c.token != "" {
			request.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.origin != "" {
			request.Header.Set("Origin", c.origin)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("token %q, origin %q: %d, not %d: %s", c.token, c.origin, response.StatusCode, c.status, body)
		}
	}

	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(),
		&mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp", HTTPClient: &http.Client{Transport: withToken{"secret"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	c := &client{ClientSession: session}
	c.must(t, "remember", map[string]any{"text": "over HTTP"}, nil)
	var recalled recallResult
	c.must(t, "recall", map[string]any{"query": "HTTP"}, &recalled)
	if len(recalled.Hits) != 1 {
		t.Errorf("%+v", recalled)
	}
}

func TestHTTPIsForThisMachineAndNeedsAToken(t *testing.T) {
	for _, s := range []settings{{http: "127.0.0.1:0"}, {http: "0.0.0.0:0", token: "secret"}} {
		if err := serveHTTP(context.Background(), &s, nil); err == nil {
			t.Errorf("%+v is served", s)
		}
	}
}

// raw is a server whose lines are written and read by hand.
type raw struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func startRaw(t *testing.T) *raw {
	command := serverCommand("--db", filepath.Join(t.TempDir(), "m"))
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &raw{in, bufio.NewReader(out)}
}

func (r *raw) ask(t *testing.T, line string) map[string]any {
	t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := r.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var message map[string]any
	if err := json.Unmarshal(answer, &message); err != nil || message["jsonrpc"] != "2.0" {
		t.Fatalf("standard output has something else than the protocol: %q", answer)
	}
	return message
}

const hello = `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestAnUnknownFirstMessageDoesNotEndTheProcess(t *testing.T) {
	r := startRaw(t)
	if answer := r.ask(t, `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}`); answer["error"] == nil {
		t.Error(answer)
	}
	if answer := r.ask(t, hello); answer["result"] == nil {
		t.Error(answer)
	}
	io.WriteString(r.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	if answer := r.ask(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); answer["result"] == nil || answer["id"] != 2.0 {
		t.Error(answer)
	}
}

func TestALineOf16MiBPasses(t *testing.T) {
	r := startRaw(t)
	r.ask(t, hello)
	io.WriteString(r.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	answer := r.ask(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ingest","arguments":{"source":"s","text":%q}}}`,
		strings.Repeat("x", 16<<20)))
	text, _ := json.Marshal(answer)
	// It arrives, and is refused with advice.
	if answer["result"] == nil || !strings.Contains(string(text), "in parts") {
		t.Errorf("%.300s", text)
	}
}

func TestTheNewestProtocolNeedsNoHandshake(t *testing.T) {
	r := startRaw(t)
	answer := r.ask(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if text, _ := json.Marshal(answer); answer["result"] == nil || !strings.Contains(string(text), "2026-07-28") {
		t.Errorf("%s", text)
	}
}

func TestHelpHasConfigurationsThatParse(t *testing.T) {
	var help strings.Builder
	if _, err := parse([]string{"--help"}, &help); err == nil {
		t.Error("--help is no end")
	}
	found := 0
	for _, line := range strings.Split(help.String(), "\n") {
		if strings.HasPrefix(line, `  {"`) {
			found++
			if !json.Valid([]byte(line)) || !strings.Contains(line, os.Args[0]) {
				t.Errorf("%s", line)
			}
		}
	}
	if found != 2 {
		t.Error(help.String())
	}
}

func TestTheSpaceIsThatOfTheRepository(t *testing.T) {
	folder := t.TempDir()
	inside := filepath.Join(folder, "a", "b")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if spaceOf(inside) == spaceOf(folder) || !strings.HasPrefix(spaceOf(inside), "b-") {
		t.Error(spaceOf(inside))
	}
	if err := os.Mkdir(filepath.Join(folder, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if spaceOf(inside) != spaceOf(folder) || len(spaceOf("/"+strings.Repeat("é", 200))) > spaceBytesMax {
		t.Error(spaceOf(inside), spaceOf(folder))
	}
}
