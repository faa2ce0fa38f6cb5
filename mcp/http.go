package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveHTTP serves Streamable HTTP at /mcp. The address must be of the loopback interface, requests need the bearer
// token, and those of web pages an origin that is allowed.
func serveHTTP(ctx context.Context, s *settings, server *mcp.Server) error {
	if s.token == "" {
		return errors.New("--http needs a token: set BASALT_MCP_TOKEN to a long random text, and give it to the clients")
	}
	listener, err := net.Listen("tcp", s.http)
	if err != nil {
		return err
	}
	defer listener.Close()
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return fmt.Errorf("--http %s is reachable from other machines: use 127.0.0.1:PORT, behind a proxy with TLS if need be", s.http)
	}
	logf("serving http://%s/mcp", listener.Addr())
	handler := httpHandler(s, server, &mcp.StreamableHTTPOptions{Stateless: true})
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		web.Close()
	}()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// httpHandler serves requests that may call.
func httpHandler(s *settings, server *mcp.Server, options *mcp.StreamableHTTPOptions) http.Handler {
	options.MaxRequestBodyBytes = lineBytesMax
	stream := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
	origins := strings.FieldsFunc(s.origins, func(r rune) bool { return r == ',' || r == ' ' })
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" && !slices.Contains(origins, origin) {
			http.Error(w, "the origin "+origin+" may not call: see --allow-origin", http.StatusForbidden)
			return
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "give the bearer token of BASALT_MCP_TOKEN", http.StatusUnauthorized)
			return
		}
		stream.ServeHTTP(w, r)
	})
	return mux
}
