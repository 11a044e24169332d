// A server and a client of the matrix on the official Go SDK.
//
//	go_sdk stdio|http    the server
//	go_sdk JSON          the client
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"rialto.example/peers/peer"
)

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// --- the server ---

func handler(server *mcp.Server, row peer.Tool) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if row.Result != nil {
			result := peer.From[mcp.CallToolResult](row.Result)
			return &result, nil
		}
		if row.Plain {
			wanted := peer.From[struct{ Params mcp.ElicitParams }](row.Asks["user"])
			answer, err := request.Session.Elicit(ctx, &wanted.Params)
			if err != nil {
				return nil, err
			}
			shown, err := json.Marshal(answer)
			return text(string(shown)), err
		}
		if row.Asks != nil {
			if len(request.Params.InputResponses) > 0 {
				answers, err := json.Marshal(request.Params.InputResponses)
				return text(string(answers)), err
			}
			asks, _ := json.Marshal(row.Asks)
			return &mcp.CallToolResult{InputRequests: peer.From[mcp.InputRequestMap](asks)}, nil
		}
		token := request.Params.GetProgressToken()
		return text(peer.Run(ctx, request.Params.Name, request.Params.Arguments, peer.Way{
			Log: func(s string) {
				_ = request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Logger: "peer", Data: s})
			},
			Progress: func(done float64) {
				if token != nil {
					_ = request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100})
				}
			},
			Touch: func(uri string) { _ = server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}) },
		})), nil
	}
}

func makeServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1.0.0"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: peer.Completion(r.Params.Argument.Value)}}, nil
		},
	})
	for _, row := range peer.Offer.Tools {
		tool := peer.From[mcp.Tool](row.Tool)
		server.AddTool(&tool, handler(server, row))
	}
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		found := peer.Read(r.Params.URI)
		if found == nil {
			return nil, mcp.ResourceNotFoundError(r.Params.URI)
		}
		contents := peer.From[mcp.ResourceContents](found)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&contents}}, nil
	}
	for _, row := range peer.Offer.Resources {
		resource := peer.From[mcp.Resource](row.Resource)
		server.AddResource(&resource, read)
	}
	template := peer.From[mcp.ResourceTemplate](peer.Offer.Template)
	server.AddResourceTemplate(&template, read)
	for _, row := range peer.Offer.Prompts {
		prompt := peer.From[mcp.Prompt](row.Prompt)
		server.AddPrompt(&prompt, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: peer.From[[]*mcp.PromptMessage](peer.Fill(row.Messages, r.Params.Arguments))}, nil
		})
	}
	return server
}

// --- the client ---

var logs, updates, progress peer.Heard

func connect(ctx context.Context, job peer.Job) (peer.Call, map[string]peer.Op, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "peer-client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"username": "ada", "email": "ada@example.com"}}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			said := "sampled: " + r.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: said}}, nil
		},
		LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { logs.Add([]any{r.Params.Level, r.Params.Data}) },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates.Add(r.Params.URI) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress.Add([]any{r.Params.Progress, r.Params.Total})
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///peers", Name: "peers"})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: job.Url}
	if job.Way == "stdio" {
		transport = &mcp.CommandTransport{Command: exec.Command(job.Command[0], job.Command[1:]...)}
	} else if job.Way == "sse" {
		transport = &mcp.SSEClientTransport{Endpoint: job.Url}
	}
	s, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, nil, err
	}
	call := func(ctx context.Context, step *peer.Step) (any, error) {
		params := &mcp.CallToolParams{Name: step.Name, Arguments: step.Arguments()}
		if step.Op == "progress" {
			params.SetProgressToken("one")
		}
		if step.Op == "log" {
			params.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": "debug"}
		}
		return s.CallTool(ctx, params)
	}
	return call, operations(s, call), nil
}

func operations(s *mcp.ClientSession, call peer.Call) map[string]peer.Op {
	modern := s.InitializeResult().ProtocolVersion == "2026-07-28"
	return map[string]peer.Op{
		"version":      func(context.Context, *peer.Step) (any, error) { return s.InitializeResult().ProtocolVersion, nil },
		"capabilities": func(context.Context, *peer.Step) (any, error) { return s.InitializeResult().Capabilities, nil },
		"server":       func(context.Context, *peer.Step) (any, error) { return s.InitializeResult().ServerInfo, nil },
		"list": func(ctx context.Context, step *peer.Step) (any, error) {
			switch step.What {
			case "tools":
				return s.ListTools(ctx, nil)
			case "resources":
				return s.ListResources(ctx, nil)
			case "templates":
				return s.ListResourceTemplates(ctx, nil)
			}
			return s.ListPrompts(ctx, nil)
		},
		"read": func(ctx context.Context, step *peer.Step) (any, error) {
			return s.ReadResource(ctx, &mcp.ReadResourceParams{URI: step.Uri})
		},
		"get": func(ctx context.Context, step *peer.Step) (any, error) {
			args, _ := json.Marshal(step.Args)
			return s.GetPrompt(ctx, &mcp.GetPromptParams{Name: step.Name, Arguments: peer.From[map[string]string](args)})
		},
		"complete": func(ctx context.Context, step *peer.Step) (any, error) {
			params := peer.From[mcp.CompleteParams](step.Params)
			return s.Complete(ctx, &params)
		},
		"log": func(ctx context.Context, step *peer.Step) (any, error) {
			if !modern {
				if err := s.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
					return nil, err
				}
			}
			_, err := call(ctx, step)
			return logs.Since(0), err
		},
		"progress": func(ctx context.Context, step *peer.Step) (any, error) {
			_, err := call(ctx, step)
			return progress.Since(0), err
		},
		"subscribe": func(ctx context.Context, step *peer.Step) (any, error) {
			if err := s.Subscribe(ctx, &mcp.SubscribeParams{URI: step.Uri}); err != nil {
				return nil, err
			}
			if _, err := call(ctx, step.Touch); err != nil {
				return nil, err
			}
			return updates.Since(5e9), s.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: step.Uri})
		},
	}
}

func main() {
	switch os.Args[1] {
	case "stdio":
		log.Fatal(makeServer().Run(context.Background(), &mcp.StdioTransport{}))
	case "http":
		server := makeServer()
		log.Fatal(peer.Listen(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	default:
		peer.Client(connect)
	}
}
