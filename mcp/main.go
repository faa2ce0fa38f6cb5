// basalt-mcp gives agents a memory that lasts, over the Model Context Protocol. docs/mcp.md is its manual.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"basalt"
)

const version = "0.1.0"

// lineBytesMax bounds one message on stdin.
const lineBytesMax = 64 << 20

// Standard output carries the protocol alone.
func logf(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "basalt-mcp: "+format+"\n", values...)
}

type settings struct {
	database   string
	space      string
	profile    string
	durability string
	http       string
	token      string
	origins    string
	arguments  []string
}

var durabilities = map[string]basalt.Durability{"process": basalt.Process, "power": basalt.Power}

func main() {
	s, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(s)
	}
	if err != nil {
		logf("%v", err)
		os.Exit(1)
	}
}

func parse(arguments []string, help io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("basalt-mcp", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.database, "db", "", "the `folder` of the database")
	flags.StringVar(&s.space, "space", "", "the `name` of the space of calls that name none")
	flags.StringVar(&s.profile, "profile", "default", "which tools: default, reference, kv or minkv")
	flags.StringVar(&s.durability, "durability", "process", "what a change survives: process or power")
	flags.StringVar(&s.http, "http", "", "serve Streamable HTTP on this `address` instead of stdio")
	flags.StringVar(&s.origins, "allow-origin", "", "web `origins` that may call, with commas between")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			printHelp(help, flags)
		}
		return nil, err
	}
	s.arguments = flags.Args()
	s.token = os.Getenv("BASALT_MCP_TOKEN")
	if _, ok := profiles[s.profile]; !ok {
		return nil, fmt.Errorf("there is no profile %q: default, reference, kv or minkv", s.profile)
	}
	if _, ok := durabilities[s.durability]; !ok {
		return nil, fmt.Errorf("durability is %q, and must be process or power", s.durability)
	}
	if s.database == "" {
		folder, err := dataFolder()
		if err != nil {
			return nil, err
		}
		s.database = filepath.Join(folder, "memory")
	}
	if s.space == "" {
		folder, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		s.space = spaceOf(folder)
	}
	var err error
	s.database, err = filepath.Abs(s.database)
	return s, err
}

// dataFolder is the user's folder for data (XDG base directories).
func dataFolder() (string, error) {
	if folder := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "basalt"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for data: set XDG_DATA_HOME or HOME, or give --db: %w", err)
	}
	return filepath.Join(home, ".local", "share", "basalt"), nil
}

// spaceOf names the space of a working folder: that of the repository around it, if there is one. The digest tells
// apart folders with one name.
func spaceOf(folder string) string {
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			folder = at
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	digest := sha256.Sum256([]byte(folder))
	name := strings.Trim(filepath.Base(folder), "/.")
	return strings.ToValidUTF8(name[:min(len(name), 40)], "") + "-" + hex.EncodeToString(digest[:4])
}

func run(s *settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	peer := NewPeer(s.database, durabilities[s.durability])
	err := serve(ctx, s, peer)
	return errors.Join(err, peer.Close())
}

func serve(ctx context.Context, s *settings, peer *Peer) error {
	if len(s.arguments) > 0 {
		return command(ctx, s, peer)
	}
	server, err := newServer(s.profile, s.space, peer)
	if err != nil {
		return err
	}
	if s.http != "" {
		return serveHTTP(ctx, s, server)
	}
	err = server.Run(ctx, &mcp.StdioTransport{MaxLineLength: lineBytesMax})
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func command(ctx context.Context, s *settings, peer *Peer) error {
	if s.arguments[0] == "import" && len(s.arguments) == 2 {
		file, err := os.Open(s.arguments[1])
		if err != nil {
			return err
		}
		defer file.Close()
		imported, err := importMemory(ctx, file, s.space, peer)
		fmt.Printf("%d entities and %d relations were imported into the space %q\n", imported.entities, imported.relations, s.space)
		return err
	}
	return fmt.Errorf("there is no command %q: the only one is import FILE", strings.Join(s.arguments, " "))
}

func printHelp(out io.Writer, flags *flag.FlagSet) {
	program, err := os.Executable()
	if err != nil {
		program = "basalt-mcp"
	}
	fmt.Fprintf(out, `basalt-mcp: a memory for agents, over the Model Context Protocol

  basalt-mcp [OPTION...]              serves MCP on standard input and output
  basalt-mcp [OPTION...] import FILE  imports the memory.jsonl of the reference memory server

Options:
`)
	flags.SetOutput(out)
	flags.PrintDefaults()
	fmt.Fprintf(out, `
The database lies in $XDG_DATA_HOME/basalt/memory, or ~/.local/share/basalt/memory. Any number of processes may use it.
With --http, clients need the bearer token of the environment variable BASALT_MCP_TOKEN.

Claude Code:

  claude mcp add basalt -- %[1]s

Claude Desktop, Cursor (~/.cursor/mcp.json), Windsurf and others with "mcpServers":

  {"mcpServers": {"basalt": {"command": "%[1]s", "args": []}}}

VS Code (.vscode/mcp.json):

  {"servers": {"basalt": {"type": "stdio", "command": "%[1]s", "args": []}}}

Codex (~/.codex/config.toml):

  [mcp_servers.basalt]
  command = "%[1]s"

A client that was set up for the reference memory server gets the same tools with "args": ["--profile", "reference"];
"kv" has keys with values, and "minkv" the tools of MinKV's server.
`, program)
}
