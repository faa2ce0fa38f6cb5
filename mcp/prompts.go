package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const rememberSession = `Look through this conversation for what will be useful in later ones: decisions and their reasons, preferences of the user, names and how they are connected, and what is left to do. Leave out what can be looked up elsewhere, passwords and other secrets.

Call remember once for each: a short text that is understood alone, the entities that it is about, and facts as relations. Where something has changed, give the new fact with "replaces". Then say in a few lines what was remembered.`

// addPrompts adds the prompts that use the tools of the default profile.
func addPrompts(server *mcp.Server, space string, backend caller) {
	server.AddPrompt(&mcp.Prompt{Name: "recall", Title: "Recall", Description: "Gives the model what is known about a topic",
		Arguments: []*mcp.PromptArgument{{Name: "topic", Title: "Topic", Required: true, Description: "what to look for, in any words"},
			{Name: "space", Title: "Space", Description: "the space of memories; that of the working folder unless given"}}},
		func(ctx context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			topic, of := request.Params.Arguments["topic"], space
			if named := request.Params.Arguments["space"]; named != "" {
				of = named
			}
			var known contextResult
			if err := callTool(ctx, backend, of, "context", recallArguments{Query: topic}, &known); err != nil {
				return nil, err
			}
			text := fmt.Sprintf("Nothing is remembered about %q.", topic)
			if known.Context != "" {
				text = fmt.Sprintf("This is remembered about %q. Name the source of what you use.\n\n%s", topic, known.Context)
			}
			return userPrompt(text), nil
		})
	server.AddPrompt(&mcp.Prompt{Name: "remember_session", Title: "Remember this session",
		Description: "Asks the model to remember what matters of the conversation"},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return userPrompt(rememberSession), nil
		})
}

func userPrompt(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}
