// Package peer is what the Go peers of the matrix share: the offer, what its tools do, a client's job and
// how its steps are reported.
package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

type Tool struct {
	Tool   json.RawMessage            `json:"tool"`
	Result json.RawMessage            `json:"result"`
	Asks   map[string]json.RawMessage `json:"asks"`
	Plain  bool                       `json:"plain"` // asks by sending a request
}

type Prompt struct {
	Prompt   json.RawMessage `json:"prompt"`
	Messages json.RawMessage `json:"messages"`
}

type Resource struct {
	Resource json.RawMessage `json:"resource"`
	Contents json.RawMessage `json:"contents"`
}

type offer struct {
	Tools            []Tool
	Resources        []Resource
	Template         json.RawMessage
	TemplateContents json.RawMessage
	Prompts          []Prompt
}

// Offer is tests/peers/offer.json.
var Offer = func() (o offer) {
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../offer.json"))
	if err != nil {
		panic(err)
	}
	return From[offer](text)
}()

// From reads JSON that is known to be good.
func From[T any](text []byte) (value T) {
	if err := json.Unmarshal(text, &value); err != nil {
		panic(err)
	}
	return value
}

// --- servers ---

var hole = regexp.MustCompile(`\{(\w+)\}`)

// Fill replaces {name} in a JSON text by arguments.
func Fill(text []byte, args map[string]string) []byte {
	return hole.ReplaceAllFunc(text, func(m []byte) []byte {
		value, found := args[string(m[1:len(m)-1])]
		if !found {
			return m
		}
		quoted, _ := json.Marshal(value)
		return quoted[1 : len(quoted)-1]
	})
}

var address = regexp.MustCompile(`^test://template/([^/]+)/data$`)

// Read gives the contents at a URI, nil when there is nothing.
func Read(uri string) []byte {
	if m := address.FindStringSubmatch(uri); m != nil {
		return Fill(Offer.TemplateContents, map[string]string{"id": m[1]})
	}
	for _, r := range Offer.Resources {
		if strings.Contains(string(r.Resource), `"`+uri+`"`) {
			return r.Contents
		}
	}
	return nil
}

func Completion(value string) (values []string) {
	for _, word := range []string{"paris", "park", "party"} {
		if strings.HasPrefix(word, value) {
			values = append(values, word)
		}
	}
	return values
}

// Way is what a tool without a fixed result needs from its SDK.
type Way struct {
	Log      func(text string)
	Progress func(done float64)
	Touch    func(uri string)
}

var slow sync.Map

func Run(ctx context.Context, name string, arguments json.RawMessage, way Way) string {
	var args map[string]any
	_ = json.Unmarshal(arguments, &args)
	switch name {
	case "echo":
		return string(arguments)
	case "die":
		os.Exit(1)
	case "slow_state":
		if state, found := slow.Load(args["tag"]); found {
			return state.(string)
		}
		return "unknown"
	case "slow":
		slow.Store(args["tag"], "running")
		select {
		case <-ctx.Done():
			slow.Store(args["tag"], "cancelled")
		case <-time.After(10 * time.Second):
			slow.Store(args["tag"], "finished")
		}
		return "over"
	case "touch":
		way.Touch(args["uri"].(string))
		return fmt.Sprint(args["uri"], " updated")
	case "test_tool_with_logging":
		for _, what := range []string{"started", "processing", "completed"} {
			way.Log("Tool execution " + what)
			time.Sleep(50 * time.Millisecond)
		}
	case "test_tool_with_progress":
		for _, done := range []float64{0, 50, 100} {
			way.Progress(done)
			time.Sleep(50 * time.Millisecond)
		}
	}
	return "all done"
}

// Listen serves on a free port.
func Listen(handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s/mcp\n", listener.Addr())
	return http.Serve(listener, handler)
}

// --- clients ---

type Step struct {
	Step, Op, What, Name, Uri string
	Args                      map[string]any
	Then, Touch, Die, Echo    *Step
	Params                    json.RawMessage
}

// Arguments is never nil: servers refuse null.
func (s *Step) Arguments() map[string]any {
	if s.Args == nil {
		return map[string]any{}
	}
	return s.Args
}

type Job struct {
	Way, Url string
	Command  []string
	Steps    []Step
}

// Heard collects notifications.
type Heard struct {
	mutex sync.Mutex
	list  []any
}

func (h *Heard) Add(what any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.list = append(h.list, what)
}

// Since waits for the first one, a moment for more, and empties the list.
func (h *Heard) Since(wait time.Duration) []any {
	for end := time.Now().Add(wait); time.Now().Before(end) && h.empty(); {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	list := h.list
	h.list = nil
	return list
}

func (h *Heard) empty() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return len(h.list) == 0
}

type Call func(ctx context.Context, step *Step) (any, error)
type Op func(ctx context.Context, step *Step) (any, error)

func say(step string, got any, err error) {
	line := map[string]any{"step": step, "got": got}
	if err != nil {
		line = map[string]any{"step": step, "error": map[string]any{"message": err.Error()}}
	}
	text, _ := json.Marshal(line)
	os.Stdout.Write(append(text, '\n'))
}

func isError(result any) bool {
	text, _ := json.Marshal(result)
	return strings.Contains(string(text), `"isError":true`)
}

func cancelled(ctx context.Context, call Call, step *Step) (any, error) {
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	_, err := call(short, step)
	time.Sleep(500 * time.Millisecond)
	then, after := call(ctx, step.Then)
	return map[string]any{"failed": err != nil, "then": then}, after
}

func killed(ctx context.Context, call Call, step *Step) (any, error) {
	result, err := call(ctx, step.Die)
	failed := err != nil || isError(result)
	for {
		back, err := call(ctx, step.Echo)
		if err == nil && !isError(back) {
			return map[string]any{"back": back, "failed": failed}, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// Client does the job that is the last argument: it connects and runs the steps with what connect returned.
func Client(connect func(ctx context.Context, job Job) (Call, map[string]Op, error)) {
	job := From[Job]([]byte(os.Args[len(os.Args)-1]))
	call, ops, err := connect(context.Background(), job)
	if err != nil {
		say("connect", nil, err)
		return
	}
	ops["call"] = Op(call)
	ops["cancel"] = func(ctx context.Context, step *Step) (any, error) { return cancelled(ctx, call, step) }
	ops["kill"] = func(ctx context.Context, step *Step) (any, error) { return killed(ctx, call, step) }
	for _, step := range job.Steps {
		limit := 30 * time.Second
		if step.Op == "kill" {
			limit *= 2
		}
		ctx, stop := context.WithTimeout(context.Background(), limit)
		op := ops[step.Op]
		if op == nil {
			op = func(context.Context, *Step) (any, error) { return nil, errors.New("not done by this client") }
		}
		got, err := op(ctx, &step)
		stop()
		say(step.Step, got, err)
	}
}
