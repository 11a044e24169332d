// A server and a client of the matrix on mcp-go.
//
//	mcp_go_peer stdio|http    the server
//	mcp_go_peer JSON          the client
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"rialto.example/peers/peer"
)

// --- the server ---

func handler(s *server.MCPServer, row peer.Tool) server.ToolHandlerFunc {
	return func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if row.Result != nil {
			return mcp.ParseCallToolResult(&row.Result)
		}
		if row.Plain {
			answer, err := s.RequestElicitation(ctx, peer.From[mcp.ElicitationRequest](row.Asks["user"]))
			if err != nil {
				return nil, err
			}
			shown, err := json.Marshal(answer)
			return mcp.NewToolResultText(string(shown)), err
		}
		if row.Asks != nil {
			if len(request.Params.InputResponses) > 0 {
				answers, err := json.Marshal(request.Params.InputResponses)
				return mcp.NewToolResultText(string(answers)), err
			}
			asks, _ := json.Marshal(row.Asks)
			wanted := mcp.NewInputRequiredResult(peer.From[mcp.InputRequests](asks), "")
			return &mcp.CallToolResult{Result: wanted.Result, MultiRoundTripResult: wanted.MultiRoundTripResult}, nil
		}
		arguments, _ := json.Marshal(request.GetArguments())
		tell := func(method string, params map[string]any) { _ = s.SendNotificationToClient(ctx, method, params) }
		return mcp.NewToolResultText(peer.Run(ctx, request.Params.Name, arguments, peer.Way{
			Log: func(text string) {
				tell("notifications/message", map[string]any{"level": "info", "logger": "peer", "data": text})
			},
			Progress: func(done float64) {
				if request.Params.Meta != nil && request.Params.Meta.ProgressToken != nil {
					tell("notifications/progress", map[string]any{"progressToken": request.Params.Meta.ProgressToken, "progress": done, "total": 100})
				}
			},
			Touch: func(uri string) {
				s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": uri})
			},
		})), nil
	}
}

func makeServer() *server.MCPServer {
	s := server.NewMCPServer("peer", "1.0.0", server.WithToolCapabilities(false), server.WithPromptCapabilities(false),
		server.WithResourceCapabilities(true, false), server.WithLogging(), server.WithElicitation(), server.WithRoots(),
		server.WithTaskCapabilities(true, true, true))
	s.EnableSampling()
	for _, row := range peer.Offer.Tools {
		s.AddTool(peer.From[mcp.Tool](row.Tool), handler(s, row))
	}
	s.AddTool(mcp.NewTool("task_echo", mcp.WithDescription("Says it later"), mcp.WithString("text"), mcp.WithTaskSupport(mcp.TaskSupportRequired)),
		func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(400 * time.Millisecond)
			return mcp.NewToolResultText(request.GetString("text", "")), nil
		})
	read := func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		contents, err := mcp.ParseResourceContents(peer.From[map[string]any](peer.Read(r.Params.URI)))
		return []mcp.ResourceContents{contents}, err
	}
	for _, row := range peer.Offer.Resources {
		s.AddResource(peer.From[mcp.Resource](row.Resource), read)
	}
	s.AddResourceTemplate(peer.From[mcp.ResourceTemplate](peer.Offer.Template), read)
	for _, row := range peer.Offer.Prompts {
		s.AddPrompt(peer.From[mcp.Prompt](row.Prompt), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			result := &mcp.GetPromptResult{}
			for _, m := range peer.From[[]struct{ Content json.RawMessage }](peer.Fill(row.Messages, r.Params.Arguments)) {
				content, err := mcp.UnmarshalContent(m.Content)
				if err != nil {
					return nil, err
				}
				result.Messages = append(result.Messages, mcp.NewPromptMessage(mcp.RoleUser, content))
			}
			return result, nil
		})
	}
	return s
}

// --- the client ---

var logs, updates, progress peer.Heard

type answers struct{}

func (answers) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: "accept",
		Content: map[string]any{"username": "ada", "email": "ada@example.com", "name": "ada"}}}, nil
}

func (answers) CreateMessage(_ context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	asked, _ := json.Marshal(r.Messages[0].Content)
	said := "sampled: " + peer.From[struct{ Text string }](asked).Text
	return &mcp.CreateMessageResult{Model: "m", SamplingMessage: mcp.SamplingMessage{Role: "assistant", Content: mcp.NewTextContent(said)}}, nil
}

func (answers) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///peers", Name: "peers"}}}, nil
}

func hear(n mcp.JSONRPCNotification) {
	params := n.Params.AdditionalFields
	switch n.Method {
	case "notifications/message":
		logs.Add([]any{params["level"], params["data"]})
	case "notifications/progress":
		progress.Add([]any{params["progress"], params["total"]})
	case "notifications/resources/updated":
		updates.Add(params["uri"])
	}
}

func reach(job peer.Job) (transport.Interface, error) {
	switch job.Way {
	case "stdio":
		return transport.NewStdio(job.Command[0], nil, job.Command[1:]...), nil
	case "sse":
		return transport.NewSSE(job.Url)
	}
	return transport.NewStreamableHTTP(job.Url, transport.WithContinuousListening())
}

func connect(ctx context.Context, job peer.Job) (peer.Call, map[string]peer.Op, error) {
	way, err := reach(job)
	if err != nil {
		return nil, nil, err
	}
	c := client.NewClient(way, client.WithElicitationHandler(answers{}), client.WithSamplingHandler(answers{}), client.WithRootsHandler(answers{}))
	c.OnNotification(hear)
	if err := c.Start(ctx); err != nil {
		return nil, nil, err
	}
	greeting := mcp.InitializeRequest{}
	greeting.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	greeting.Params.ClientInfo = mcp.Implementation{Name: "peer-client", Version: "1"}
	started, err := c.Initialize(ctx, greeting)
	if err != nil {
		return nil, nil, err
	}
	call := func(ctx context.Context, step *peer.Step) (any, error) {
		params := mcp.CallToolParams{Name: step.Name, Arguments: step.Arguments(), Meta: &mcp.Meta{}}
		if step.Op == "progress" {
			params.Meta.ProgressToken = "one"
		}
		if step.Op == "log" && c.ProtocolVersion() == "2026-07-28" {
			params.Meta.AdditionalFields = map[string]any{"io.modelcontextprotocol/logLevel": "debug"}
		}
		return c.CallTool(ctx, mcp.CallToolRequest{Params: params})
	}
	return call, operations(c, started, call), nil
}

func operations(c *client.Client, started *mcp.InitializeResult, call peer.Call) map[string]peer.Op {
	modern := c.ProtocolVersion() == "2026-07-28"
	return map[string]peer.Op{
		"version":      func(context.Context, *peer.Step) (any, error) { return c.ProtocolVersion(), nil },
		"capabilities": func(context.Context, *peer.Step) (any, error) { return started.Capabilities, nil },
		"server":       func(context.Context, *peer.Step) (any, error) { return started.ServerInfo, nil },
		"list": func(ctx context.Context, step *peer.Step) (any, error) {
			switch step.What {
			case "tools":
				return c.ListTools(ctx, mcp.ListToolsRequest{})
			case "resources":
				return c.ListResources(ctx, mcp.ListResourcesRequest{})
			case "templates":
				return c.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
			}
			return c.ListPrompts(ctx, mcp.ListPromptsRequest{})
		},
		"read": func(ctx context.Context, step *peer.Step) (any, error) {
			return c.ReadResource(ctx, mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: step.Uri}})
		},
		"get": func(ctx context.Context, step *peer.Step) (any, error) {
			args, _ := json.Marshal(step.Args)
			return c.GetPrompt(ctx, mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: step.Name, Arguments: peer.From[map[string]string](args)}})
		},
		"complete": func(ctx context.Context, step *peer.Step) (any, error) {
			return c.Complete(ctx, mcp.CompleteRequest{Params: peer.From[mcp.CompleteParams](step.Params)})
		},
		"log": func(ctx context.Context, step *peer.Step) (any, error) {
			if !modern {
				if err := c.SetLevel(ctx, mcp.SetLevelRequest{Params: mcp.SetLevelParams{Level: "debug"}}); err != nil {
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
			if err := c.Subscribe(ctx, mcp.SubscribeRequest{Params: mcp.SubscribeParams{URI: step.Uri}}); err != nil {
				return nil, err
			}
			if modern {
				stop, err := c.ListenAsync(ctx, c.PendingSubscriptionFilter(), nil)
				if err != nil {
					return nil, err
				}
				defer stop()
				updates.Since(5e8) // the client does not tell when the server has accepted the subscription
			}
			if _, err := call(ctx, step.Touch); err != nil {
				return nil, err
			}
			return updates.Since(5e9), c.Unsubscribe(ctx, mcp.UnsubscribeRequest{Params: mcp.UnsubscribeParams{URI: step.Uri}})
		},
	}
}

func main() {
	switch os.Args[1] {
	case "stdio":
		log.Fatal(server.ServeStdio(makeServer()))
	case "http":
		log.Fatal(peer.Listen(server.NewStreamableHTTPServer(makeServer())))
	default:
		peer.Client(connect)
	}
}
