package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the conformance suite expects of the server under test, beside what that server has itself: tools, resources and
// prompts of given names, which answer in given ways.

type toolAnswer func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func textResult(format string, values ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, values...)}}}
}

func always(content ...mcp.Content) toolAnswer {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

func pixel() []byte {
	var file bytes.Buffer
	png.Encode(&file, image.NewGray(image.Rect(0, 0, 1, 1)))
	return file.Bytes()
}

// silence is the head of a WAV file without samples.
func silence() []byte {
	return []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00")
}

func embedded(uri string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "An embedded resource"}}
}

// addFixture adds all of it to a server.
func addFixture(server *mcp.Server) {
	addFixtureTools(server)
	addFixtureResources(server)
	addFixturePrompts(server)
}

const forTests = "For tests"

const anyObject = `{"type":"object"}`

const schemaOf2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},
		"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
	"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

const schemaWithHeader = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`

func addFixtureTools(server *mcp.Server) {
	picture := &mcp.ImageContent{Data: pixel(), MIMEType: "image/png"}
	schemas := map[string]string{"json_schema_2020_12_tool": schemaOf2020, "test_x_mcp_header": schemaWithHeader}
	for name, answer := range map[string]toolAnswer{
		"test_simple_text":            always(&mcp.TextContent{Text: "This is a simple text response for testing."}),
		"test_image_content":          always(picture),
		"test_audio_content":          always(&mcp.AudioContent{Data: silence(), MIMEType: "audio/wav"}),
		"test_embedded_resource":      always(embedded("test://embedded-resource")),
		"test_multiple_content_types": always(&mcp.TextContent{Text: "text"}, picture, embedded("test://embedded-in-multiple")),
		"test_tool_with_logging":      logsThrice,
		"test_logging_tool":           logsThrice,
		"test_tool_with_progress":     showsProgress,
		"test_error_handling": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result := &mcp.CallToolResult{}
			result.SetError(errors.New("this tool intentionally returns an error for testing"))
			return result, nil
		},
		"test_sampling":                     samples,
		"test_elicitation":                  elicits(`{"username":{"type":"string"}}`),
		"test_elicitation_sep1034_defaults": elicits(defaultsOfEachType),
		"test_elicitation_sep1330_enums":    elicits(enumsOfEachKind),
		"json_schema_2020_12_tool":          always(&mcp.TextContent{Text: "called"}),
		"test_x_mcp_header":                 always(&mcp.TextContent{Text: "called"}),
		"test_reconnection":                 closesItsStream,
		"test_missing_capability":           needsSampling,
		"test_streaming_elicitation":        always(&mcp.TextContent{Text: "no requests, only this"}),
		"test_trigger_tool_change": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddTool(&mcp.Tool{Name: "passing", Description: forTests, InputSchema: json.RawMessage(anyObject)}, mcp.ToolHandler(always()))
			return textResult("changed"), nil
		},
		"test_trigger_prompt_change": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddPrompt(&mcp.Prompt{Name: "passing", Description: forTests}, says())
			return textResult("changed"), nil
		},
		"test_input_required_result_elicitation":     asks(inputs{"user_name": "elicitation"}, ""),
		"test_input_required_result_sampling":        asks(inputs{"capital_question": "sampling"}, ""),
		"test_input_required_result_list_roots":      asks(inputs{"client_roots": "roots"}, ""),
		"test_input_required_result_request_state":   asks(inputs{"confirm": "elicitation"}, "state"),
		"test_input_required_result_tampered_state":  asks(inputs{"confirm": "elicitation"}, "state"),
		"test_input_required_result_multiple_inputs": asks(inputs{"user_name": "elicitation", "greeting": "sampling", "client_roots": "roots"}, "state"),
		"test_input_required_result_multi_round":     asksTwice,
		"test_input_required_result_capabilities":    asksWhatTheClientCan,
	} {
		schema := schemas[name]
		if schema == "" {
			schema = anyObject
		}
		server.AddTool(&mcp.Tool{Name: name, Description: forTests, InputSchema: json.RawMessage(schema)}, mcp.ToolHandler(answer))
	}
}

func logsThrice(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for i := range 3 {
		request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: fmt.Sprint("step ", i)})
	}
	return textResult("logged"), nil
}

func showsProgress(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := request.Params.GetProgressToken()
	for _, progress := range []float64{0, 50, 100} {
		request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Total: 100})
	}
	return textResult("%v", token), nil
}

func samples(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var arguments struct{ Prompt string }
	if err := json.Unmarshal(request.Params.Arguments, &arguments); err != nil {
		return nil, err
	}
	answer, err := request.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 100,
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: arguments.Prompt}}}})
	if err != nil {
		return nil, err
	}
	return textResult("LLM response: %v", answer.Content.(*mcp.TextContent).Text), nil
}

const defaultsOfEachType = `{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
	"score":{"type":"number","default":95.5},"verified":{"type":"boolean","default":true},
	"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"}}`

const enumsOfEachKind = `{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
	"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
	"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
	"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
	"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}`

func elicits(properties string) toolAnswer {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := request.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please tell",
			RequestedSchema: json.RawMessage(`{"type":"object","properties":` + properties + `}`)})
		if err != nil {
			return nil, err
		}
		return textResult("Elicitation result: action=%s, content=%v", answer.Action, answer.Content), nil
	}
}

func closesItsStream(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if request.Extra != nil && request.Extra.CloseSSEStream != nil {
		request.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
	}
	time.Sleep(100 * time.Millisecond) // The client connects again meanwhile.
	return textResult("answered after the stream was closed"), nil
}

func needsSampling(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if can := request.ClientCapabilities(); can != nil && can.Sampling != nil {
		return textResult("the client can sample"), nil
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client cannot sample", Data: data}
}

// inputs are what a tool asks the client for: by name, "elicitation", "sampling" or "roots".
type inputs map[string]string

func (in inputs) requests() mcp.InputRequestMap {
	requests := mcp.InputRequestMap{}
	for name, kind := range in {
		switch kind {
		case "elicitation":
			requests[name] = &mcp.ElicitParams{Message: "What is your name?",
				RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}
		case "sampling":
			requests[name] = &mcp.CreateMessageParams{MaxTokens: 50,
				Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Generate a greeting"}}}}
		case "roots":
			requests[name] = &mcp.ListRootsParams{}
		}
	}
	return requests
}

// answer gives what the client answered, as text; "": it did not, or not in the kind that was asked for.
func answer(kind string, response any) string {
	switch r := response.(type) {
	case *mcp.ElicitResult:
		if kind == "elicitation" && r.Action == "accept" && len(r.Content) > 0 {
			return fmt.Sprint(r.Content)
		}
	case *mcp.CreateMessageWithToolsResult:
		if kind == "sampling" && len(r.Content) > 0 {
			return r.Content[0].(*mcp.TextContent).Text
		}
	case *mcp.ListRootsResult:
		if kind == "roots" {
			return fmt.Sprint(len(r.Roots), " roots")
		}
	}
	return ""
}

var errState = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the requestState is not from this server"}

// asks is a tool that needs inputs. With a state, the client must send that back as it was.
func asks(in inputs, state string) toolAnswer {
	return func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(request.Params.InputResponses) > 0 && request.Params.RequestState != state {
			return nil, errState
		}
		var answers []string
		for name, kind := range in {
			if text := answer(kind, request.Params.InputResponses[name]); text != "" {
				answers = append(answers, text)
			}
		}
		if len(answers) < len(in) {
			return &mcp.CallToolResult{InputRequests: in.requests(), RequestState: state}, nil
		}
		return textResult("state-ok: %s", strings.Join(answers, ", ")), nil
	}
}

func asksTwice(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	switch request.Params.RequestState {
	case "":
		return &mcp.CallToolResult{InputRequests: inputs{"step1": "elicitation"}.requests(), RequestState: "first"}, nil
	case "first":
		return &mcp.CallToolResult{InputRequests: inputs{"step2": "elicitation"}.requests(), RequestState: "second"}, nil
	}
	return textResult("complete: %s", answer("elicitation", request.Params.InputResponses["step2"])), nil
}

func asksWhatTheClientCan(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	in := inputs{}
	if can := request.ClientCapabilities(); can != nil {
		if can.Elicitation != nil {
			in["user_name"] = "elicitation"
		}
		if can.Sampling != nil {
			in["greeting"] = "sampling"
		}
		if can.RootsV2 != nil {
			in["client_roots"] = "roots"
		}
	}
	if len(in) == 0 || len(request.Params.InputResponses) > 0 {
		return textResult("complete"), nil
	}
	return &mcp.CallToolResult{InputRequests: in.requests()}, nil
}

func addFixtureResources(server *mcp.Server) {
	reads := func(mime, text string, blob []byte) mcp.ResourceHandler {
		return func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			uri := request.Params.URI
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
				{URI: uri, MIMEType: mime, Text: strings.ReplaceAll(text, "URI", uri), Blob: blob}}}, nil
		}
	}
	server.AddResource(&mcp.Resource{Name: "static-text", URI: "test://static-text", MIMEType: "text/plain"},
		reads("text/plain", "This is the content of the static text resource.", nil))
	server.AddResource(&mcp.Resource{Name: "static-binary", URI: "test://static-binary", MIMEType: "image/png"},
		reads("image/png", "", pixel()))
	server.AddResource(&mcp.Resource{Name: "watched-resource", URI: "test://watched-resource", MIMEType: "text/plain"},
		reads("text/plain", "watched", nil))
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"},
		reads("application/json", `{"id":"123","uri":"URI"}`, nil))
}

func says(content ...mcp.Content) mcp.PromptHandler {
	return func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		result := &mcp.GetPromptResult{}
		for _, c := range content {
			result.Messages = append(result.Messages, &mcp.PromptMessage{Role: "user", Content: c})
		}
		return result, nil
	}
}

func addFixturePrompts(server *mcp.Server) {
	text := &mcp.TextContent{Text: "This is a simple prompt for testing."}
	server.AddPrompt(&mcp.Prompt{Name: "test_simple_prompt", Description: forTests}, says(text))
	server.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_image", Description: forTests}, says(&mcp.ImageContent{Data: pixel(), MIMEType: "image/png"}, text))
	server.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_arguments", Description: forTests,
		Arguments: []*mcp.PromptArgument{{Name: "arg1", Description: forTests, Required: true}, {Name: "arg2", Description: forTests, Required: true}}},
		func(ctx context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return says(&mcp.TextContent{Text: fmt.Sprint(request.Params.Arguments)})(ctx, request)
		})
	server.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_embedded_resource", Description: forTests,
		Arguments: []*mcp.PromptArgument{{Name: "resourceUri", Description: forTests, Required: true}}},
		func(ctx context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return says(embedded(request.Params.Arguments["resourceUri"]), text)(ctx, request)
		})
	server.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: forTests},
		func(ctx context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			told := answer("elicitation", request.Params.InputResponses["user_context"])
			if told == "" {
				return &mcp.GetPromptResult{InputRequests: inputs{"user_context": "elicitation"}.requests()}, nil
			}
			return says(&mcp.TextContent{Text: told})(ctx, request)
		})
}
