package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool as clients see it. Each has schemas of what it takes and gives, and one optional argument beside its own, the
// space, which is taken out before the operation sees the arguments.
type tool struct {
	name, title, description string
	hints                    hints
	input, output            func() (*jsonschema.Schema, error)
	operation                operation
	// text gives what is shown of a result. nil: its JSON.
	text func(result json.RawMessage) string
}

// hints of tools: none leaves the space that it is called with.
type hints struct{ readOnly, destructive, idempotent bool }

func schemaOf[T any]() func() (*jsonschema.Schema, error) {
	return func() (*jsonschema.Schema, error) {
		schema, err := jsonschema.For[T](nil)
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", reflect.TypeFor[T](), err)
		}
		neverNull(schema)
		return schema, nil
	}
}

// neverNull takes null out of the types of arrays: we never give it, and some clients take only one type.
func neverNull(schema *jsonschema.Schema) {
	if len(schema.Types) == 2 && schema.Types[0] == "null" && schema.Types[1] == "array" {
		schema.Type, schema.Types = schema.Types[1], nil
	}
	for _, property := range schema.Properties {
		neverNull(property)
	}
	if schema.Items != nil {
		neverNull(schema.Items)
	}
}

var readOnly = hints{readOnly: true, idempotent: true}

func readTool[A, R any](name, title, description string, fn func(m *Memory, s *space, a A) (R, error)) tool {
	return tool{name: name, title: title, description: description, hints: readOnly,
		input: schemaOf[A](), output: schemaOf[R](), operation: readOperation(fn)}
}

// profiles has the tools of each profile, in their order.
var profiles = map[string][]tool{
	"default":   defaultTools(),
	"reference": referenceTools(),
	"kv":        kvTools(),
	"minkv":     minkvTools(),
}

func init() {
	for _, tools := range profiles {
		for _, t := range tools {
			operations[t.name] = t.operation
		}
	}
}

func defaultTools() []tool {
	contextTool := readTool("context", "Context",
		"Gives what is known about a question as one text within max_tokens: the best texts, their facts and related entities. Use it before answering; use recall for single hits with scores.",
		buildContext)
	contextTool.text = func(result json.RawMessage) string {
		var c contextResult
		if json.Unmarshal(result, &c) != nil {
			return string(result)
		}
		if c.Context == "" {
			return "nothing is known about this"
		}
		return c.Context + c.LeftOut
	}
	return []tool{
		{name: "remember", title: "Remember",
			description: "Remembers a text, and facts as relations between entities. What is known already stays; a fact with replaces ends earlier ones and keeps them as history.",
			hints:       hints{idempotent: true},
			input:       schemaOf[rememberArguments](), output: schemaOf[rememberResult](), operation: changeOperation(remember)},
		readTool("recall", "Recall",
			"Finds remembered texts and documents by any words, best first, each with its source, age, why it was found, and the facts of its entity.",
			recall),
		contextTool,
		readTool("neighbors", "Neighbors", "Shows an entity with its observations and its relations, now or as of a time.", neighbors),
		readTool("paths", "Paths", "Finds how two entities are connected: paths of relations, shorter ones first.", findPaths),
		{name: "ingest", title: "Ingest",
			description: "Adds a document to what recall and context find. The same source replaces it.",
			hints:       hints{idempotent: true},
			input:       schemaOf[ingestArguments](), output: schemaOf[ingestResult](), operation: changeOperation(ingest)},
		{name: "forget", title: "Forget",
			description: "Removes memories for good. The first call shows what would be removed and gives confirm; a second call with the same arguments and that confirm removes exactly this.",
			hints:       hints{destructive: true, idempotent: true},
			input:       schemaOf[forgetArguments](), output: schemaOf[forgetResult](), operation: removal(forget)},
		readTool("stats", "Stats", "Counts what the space holds, and names all spaces.", stats),
	}
}

func referenceTools() []tool {
	create := hints{}
	remove := hints{destructive: true, idempotent: true}
	tools := []tool{
		{name: "create_entities", title: "Create Entities", description: "Create multiple new entities in the knowledge graph",
			hints: create, input: schemaOf[entitiesArguments](), output: schemaOf[entitiesArguments](),
			operation: changeOperation(createEntities), text: memberText("entities")},
		{name: "create_relations", title: "Create Relations",
			description: "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
			hints:       create, input: schemaOf[relationsArguments](), output: schemaOf[relationsArguments](),
			operation: changeOperation(createRelations), text: memberText("relations")},
		{name: "add_observations", title: "Add Observations",
			description: "Add new observations to existing entities in the knowledge graph",
			hints:       create, input: schemaOf[observationsArguments](), output: schemaOf[observationsResult](),
			operation: changeOperation(addObservations), text: memberText("results")},
		{name: "delete_entities", title: "Delete Entities",
			description: "Delete multiple entities and their associated relations from the knowledge graph",
			hints:       remove, input: schemaOf[namesArguments](), output: schemaOf[successResult](),
			operation: removal(deleteEntities), text: memberText("message")},
		{name: "delete_observations", title: "Delete Observations",
			description: "Delete specific observations from entities in the knowledge graph",
			hints:       remove, input: schemaOf[deletionsArguments](), output: schemaOf[successResult](),
			operation: removal(deleteObservations), text: memberText("message")},
		{name: "delete_relations", title: "Delete Relations", description: "Delete multiple relations from the knowledge graph",
			hints: remove, input: schemaOf[relationsArguments](), output: schemaOf[successResult](),
			operation: removal(deleteRelations), text: memberText("message")},
		readTool("read_graph", "Read Graph", "Read the knowledge graph, a page at a time", readGraph),
		readTool("search_nodes", "Search Nodes", "Search for nodes in the knowledge graph based on a query", searchNodes),
		readTool("open_nodes", "Open Nodes", "Open specific nodes in the knowledge graph by their names", openNodes),
	}
	for i := range tools[6:] {
		tools[6+i].text = indented
	}
	return tools
}

// memberText shows one member of a result as the reference server does: a text as it is, all else as indented JSON.
func memberText(name string) func(json.RawMessage) string {
	return func(result json.RawMessage) string {
		var members map[string]json.RawMessage
		if json.Unmarshal(result, &members) != nil {
			return string(result)
		}
		var text string
		if json.Unmarshal(members[name], &text) == nil {
			return text
		}
		return indented(members[name])
	}
}

func indented(result json.RawMessage) string {
	var value any
	if json.Unmarshal(result, &value) != nil {
		return string(result)
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return string(result)
	}
	return string(text)
}

// caller answers requests: the peer, or a memory itself.
type caller interface {
	Call(ctx context.Context, request Request) (Reply, error)
}

const instructions = "A memory that lasts: remember texts and facts, recall them by any words, and forget them when asked. " +
	"Memories lie in spaces that do not see each other; without a space, calls use that of the working folder."

// newServer makes an MCP server for a profile. Calls that name no space use `space`.
func newServer(profile, space string, backend caller) (*mcp.Server, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "basalt", Title: "Basalt memory", Version: version},
		&mcp.ServerOptions{Instructions: instructions, CompletionHandler: completer(space, backend),
			SubscribeHandler: subscribe, UnsubscribeHandler: unsubscribe})
	addResources(server, space, backend)
	if profile == "default" {
		addPrompts(server, space, backend)
	}
	for _, t := range profiles[profile] {
		input, err := t.input()
		if err != nil {
			return nil, err
		}
		output, err := t.output()
		if err != nil {
			return nil, err
		}
		if input.Properties == nil {
			input.Properties = map[string]*jsonschema.Schema{}
		}
		input.Properties["space"] = &jsonschema.Schema{Type: "string",
			Description: "the space of memories; that of the working folder unless given"}
		if len(input.PropertyOrder) > 0 {
			input.PropertyOrder = append(input.PropertyOrder, "space")
		}
		no := false
		mcp.AddTool(server, &mcp.Tool{Name: t.name, Title: t.title, Description: t.description,
			InputSchema: input, OutputSchema: output,
			Annotations: &mcp.ToolAnnotations{Title: t.title, ReadOnlyHint: t.hints.readOnly,
				DestructiveHint: &t.hints.destructive, IdempotentHint: t.hints.idempotent, OpenWorldHint: &no}},
			t.handler(server, space, backend))
	}
	return server, nil
}

func (t tool) handler(server *mcp.Server, space string, backend caller) mcp.ToolHandlerFor[map[string]any, json.RawMessage] {
	return func(ctx context.Context, _ *mcp.CallToolRequest, arguments map[string]any) (*mcp.CallToolResult, json.RawMessage, error) {
		request := Request{Tool: t.name, Space: space}
		if named, ok := arguments["space"].(string); ok && named != "" {
			request.Space = named
		}
		delete(arguments, "space")
		var err error
		if request.Arguments, err = json.Marshal(arguments); err != nil {
			return nil, nil, err
		}
		if t.operation.change != nil {
			request.ID = newRequestID()
		}
		reply, err := backend.Call(ctx, request)
		if err != nil {
			return nil, nil, err
		}
		if reply.Failure != "" {
			return nil, nil, refusal(reply.Failure)
		}
		if t.operation.change != nil {
			uri := address{space: request.Space}.String()
			if err := server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				logf("a subscriber of %s was not told of a change: %v", uri, err)
			}
		}
		result := &mcp.CallToolResult{}
		text := string(reply.Result)
		if t.text != nil {
			text = t.text(reply.Result)
		}
		result.Content = []mcp.Content{&mcp.TextContent{Text: text}}
		return result, reply.Result, nil
	}
}
