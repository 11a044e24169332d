// A server made with mcp-go, whose JSON reader ignores the case of members: what Rialto decides
// about a call must be what this server reads. It keeps what it was called with.
package main

import (
	"context"
	"encoding/json"
	"log"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

func main() {
	var mutex sync.Mutex
	ran := []call{}
	s := server.NewMCPServer("peer", "1", server.WithToolCapabilities(false))
	for _, name := range []string{"echo", "danger"} {
		s.AddTool(mcp.NewTool(name, mcp.WithString("path")),
			func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				mutex.Lock()
				defer mutex.Unlock()
				ran = append(ran, call{request.Params.Name, request.GetArguments()})
				text, err := json.Marshal(ran[len(ran)-1])
				return mcp.NewToolResultText(string(text)), err
			})
	}
	s.AddTool(mcp.NewTool("ran"),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mutex.Lock()
			defer mutex.Unlock()
			text, err := json.Marshal(ran)
			return mcp.NewToolResultText(string(text)), err
		})
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}
