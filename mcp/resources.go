package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"basalt"
)

// Resources are what a memory holds, by address, with names as they are escaped in URLs:
//
//	basalt://spaces                            the names of all spaces
//	basalt://spaces/{space}                    what a space holds
//	basalt://spaces/{space}/entities/{name}    an entity with its relations
//	basalt://spaces/{space}/documents/{name}   the text of a document
//
// Subscribers of a space are told of the changes that are made through this process.
const spacesURI = "basalt://spaces"

// address is a URI in its parts; kind is "entities", "documents" or "".
type address struct{ space, kind, name string }

func (a address) String() string {
	uri := spacesURI
	for _, part := range []string{a.space, a.kind, a.name} {
		if part != "" {
			uri += "/" + url.PathEscape(part)
		}
	}
	return uri
}

func parseAddress(uri string) (a address, ok bool) {
	rest, ok := strings.CutPrefix(uri, spacesURI)
	if !ok || rest == "" {
		return a, ok
	}
	parts := strings.Split(rest, "/")
	if parts[0] != "" || len(parts) != 2 && len(parts) != 4 {
		return a, false
	}
	for i, part := range parts {
		name, err := url.PathUnescape(part)
		if err != nil || (name == "" && i > 0) {
			return a, false
		}
		parts[i] = name
	}
	a.space = parts[1]
	if len(parts) == 4 {
		a.kind, a.name = parts[2], parts[3]
	}
	return a, a.kind == "" || a.kind == "entities" || a.kind == "documents"
}

func addResources(server *mcp.Server, space string, backend caller) {
	read := func(ctx context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return readResource(ctx, space, backend, request.Params.URI)
	}
	server.AddResource(&mcp.Resource{URI: spacesURI, Name: "spaces", Title: "Spaces", MIMEType: "application/json",
		Description: "The names of all spaces"}, read)
	server.AddResource(&mcp.Resource{URI: address{space: space}.String(), Name: "space", Title: "This space",
		MIMEType: "application/json", Description: "What the space of the working folder holds"}, read)
	for _, template := range []mcp.ResourceTemplate{
		{URITemplate: spacesURI + "/{space}", Name: "space", Title: "Space", MIMEType: "application/json",
			Description: "What a space holds"},
		{URITemplate: spacesURI + "/{space}/entities/{name}", Name: "entity", Title: "Entity", MIMEType: "application/json",
			Description: "An entity with its observations and relations"},
		{URITemplate: spacesURI + "/{space}/documents/{name}", Name: "document", Title: "Document", MIMEType: "text/plain",
			Description: "The text of a document that was ingested"},
	} {
		server.AddResourceTemplate(&template, read)
	}
}

func readResource(ctx context.Context, space string, backend caller, uri string) (*mcp.ReadResourceResult, error) {
	missing := mcp.ResourceNotFoundError(uri)
	at, ok := parseAddress(uri)
	if !ok {
		return nil, missing
	}
	contents := &mcp.ResourceContents{URI: uri, MIMEType: "application/json"}
	var tool string
	var arguments any
	switch {
	case at.kind == "documents":
		var found document
		if err := callTool(ctx, backend, at.space, "document", documentArguments{at.name}, &found); err != nil || !found.Found {
			return nil, asMissing(err, missing)
		}
		contents.MIMEType, contents.Text = "text/plain", found.Text
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
	case at.kind == "entities":
		tool, arguments = "neighbors", neighborsArguments{Entity: at.name}
	default:
		tool, arguments = "stats", statsArguments{}
	}
	if at.space == "" {
		at.space = space
	}
	var result json.RawMessage
	if err := callTool(ctx, backend, at.space, tool, arguments, &result); err != nil {
		return nil, asMissing(err, missing)
	}
	if tool == "stats" {
		var counted statsResult
		if err := json.Unmarshal(result, &counted); err != nil {
			return nil, err
		}
		if counted.Space == "" && uri != spacesURI && at.space != space {
			return nil, missing
		}
		if uri == spacesURI {
			result, _ = json.Marshal(map[string]any{"spaces": counted.Spaces, "left_out": counted.LeftOut})
		}
	}
	contents.Text = string(result)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// asMissing gives the error of a resource that is absent, unless something else has failed.
func asMissing(err, missing error) error {
	if _, refused := err.(refusal); err == nil || refused {
		return missing
	}
	return err
}

// Subscriptions need nothing more than what the SDK keeps of them.
func subscribe(context.Context, *mcp.SubscribeRequest) error     { return nil }
func unsubscribe(context.Context, *mcp.UnsubscribeRequest) error { return nil }

type documentArguments struct {
	Name string `json:"name"`
}

type document struct {
	Found bool   `json:"found"`
	Text  string `json:"text"`
}

// readDocument gives the text of a document.
func readDocument(_ *Memory, s *space, a documentArguments) (document, error) {
	if s == nil {
		return document{}, nil
	}
	text, found, err := s.texts.Get([]byte(docPrefix + a.Name))
	return document{found, string(text)}, err
}

type completeArguments struct {
	Kind  string `json:"kind"` // "entities", "documents" or "spaces".
	Begin string `json:"begin"`
}

const completionsMax = 100

type completions struct {
	Names []string `json:"names"`
	More  bool     `json:"more"`
}

// completeName gives the names that begin with a text, in order.
func completeName(m *Memory, s *space, a completeArguments) (completions, error) {
	result := completions{Names: []string{}}
	keyspace, prefix := m.registry, ""
	if a.Kind != "spaces" {
		if s == nil {
			return result, nil
		}
		keyspace, prefix = s.sources, entityPrefix
		if a.Kind == "documents" {
			prefix = docPrefix
		}
	}
	scan := keyspace.Scan(basalt.Range{Prefix: []byte(prefix + a.Begin)})
	for name := range scan.All() {
		if len(result.Names) == completionsMax {
			result.More = true
			break
		}
		result.Names = append(result.Names, strings.TrimPrefix(string(name), prefix))
	}
	return result, scan.Err()
}

func init() {
	operations["document"] = readOperation(readDocument)
	operations["complete"] = readOperation(completeName)
}

// completer completes the variables of resource templates, and the topic of the prompt recall with entities.
func completer(space string, backend caller) func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return func(ctx context.Context, request *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		params := request.Params
		asked := completeArguments{Begin: params.Argument.Value}
		switch {
		case params.Argument.Name == "space":
			asked.Kind = "spaces"
		case params.Argument.Name == "topic":
			asked.Kind = "entities"
		case params.Argument.Name == "name" && strings.HasPrefix(params.Ref.URI, spacesURI):
			asked.Kind = "entities"
			if strings.Contains(params.Ref.URI, "/documents/") {
				asked.Kind = "documents"
			}
		}
		found := completions{Names: []string{}}
		if asked.Kind != "" {
			of := space
			if params.Context != nil && params.Context.Arguments["space"] != "" {
				of = params.Context.Arguments["space"]
			}
			if err := callTool(ctx, backend, of, "complete", asked, &found); err != nil {
				return nil, err
			}
		}
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: found.Names, HasMore: found.More}}, nil
	}
}
