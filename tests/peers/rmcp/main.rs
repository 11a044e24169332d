// A server and a client of the matrix on rmcp, the official Rust SDK.
//   rmcp_peer stdio|http    the server
//   rmcp_peer JSON          the client
#![allow(deprecated)]
use rmcp::{
    model::*,
    service::{NotificationContext, Peer, RequestContext, RunningService, ServiceError, SubscriptionContext},
    transport::{
        streamable_http_server::{session::local::LocalSessionManager, StreamableHttpService},
        StreamableHttpClientTransport, TokioChildProcess,
    },
    ClientHandler, RoleClient, RoleServer, ServerHandler, ServiceExt,
};
use serde_json::{from_value, json, to_value, Value};
use std::{collections::HashMap, future::Future, sync::LazyLock, sync::Mutex, time::Duration};
use tokio::{sync::broadcast, time::sleep};

type Failure = ErrorData;
const OFFER: &str = include_str!("../offer.json");
static OFFERED: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(OFFER).unwrap());
static SLOW: LazyLock<Mutex<HashMap<String, &str>>> = LazyLock::new(Default::default);
static TOUCHED: LazyLock<broadcast::Sender<String>> = LazyLock::new(|| broadcast::channel(16).0);

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    from_value(value).unwrap()
}

// --- the server ---

struct Server;

/// A complete result; the SDK removes resultType for clients of the initialize era.
fn result<T: serde::de::DeserializeOwned>(mut value: Value) -> T {
    value["resultType"] = json!("complete");
    read(value)
}

fn text(s: impl Into<String>) -> CallToolResult {
    result(json!({"content": [{"type": "text", "text": s.into()}]}))
}

fn column(table: &str, name: &str) -> Value {
    OFFERED[table].as_array().unwrap().iter().map(|row| row[name].clone()).collect()
}

fn row(table: &str, member: &str, key: &str, value: &str) -> Option<Value> {
    OFFERED[table].as_array().unwrap().iter().find(|r| r[member][key] == value).cloned()
}

/// Replaces {name} in a JSON text by arguments.
fn fill(value: &Value, args: &Value) -> Value {
    let mut s = value.to_string();
    for (name, value) in args.as_object().into_iter().flatten() {
        s = s.replace(&format!("{{{name}}}"), value.as_str().unwrap_or(""));
    }
    serde_json::from_str(&s).unwrap()
}

async fn ask(request: &Value, peer: &Peer<RoleServer>) -> Result<Value, ServiceError> {
    let params = request["params"].clone();
    Ok(match request["method"].as_str().unwrap() {
        "elicitation/create" => to_value(peer.create_elicitation(read(params)).await?),
        "sampling/createMessage" => to_value(peer.create_message(read(params)).await?),
        _ => to_value(peer.list_roots().await?),
    }
    .unwrap())
}

async fn run(name: &str, args: &Value, context: &RequestContext<RoleServer>) -> String {
    let tag = args["tag"].as_str().unwrap_or("").to_string();
    match name {
        "echo" => return args.to_string(),
        "die" => std::process::exit(1),
        "slow_state" => return SLOW.lock().unwrap().get(&tag).unwrap_or(&"unknown").to_string(),
        "slow" => {
            let end = tokio::select! {
                _ = context.ct.cancelled() => "cancelled",
                _ = sleep(Duration::from_secs(10)) => "finished",
            };
            SLOW.lock().unwrap().insert(tag, end);
        }
        "touch" => {
            let uri = args["uri"].as_str().unwrap().to_string();
            let _ = TOUCHED.send(uri.clone());
            if !modern(context) {
                let _ = context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
            }
        }
        "test_tool_with_logging" => {
            for what in ["started", "processing", "completed"] {
                let line = json!({"level": "info", "logger": "peer", "data": format!("Tool execution {what}")});
                let _ = context.peer.notify_logging_message(read(line)).await;
                sleep(Duration::from_millis(50)).await;
            }
        }
        _ => {
            for done in [0, 50, 100] {
                if let Some(token) = context.meta.get_progress_token() {
                    let line = json!({"progressToken": token, "progress": done, "total": 100});
                    let _ = context.peer.notify_progress(read(line)).await;
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    "all done".into()
}

fn modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() == Some(ProtocolVersion::V_2026_07_28)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        read(json!({
            "protocolVersion": "2026-07-28", "serverInfo": {"name": "peer", "version": "1.0.0"},
            "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "logging": {}, "completions": {}},
        }))
    }
    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, Failure> {
        Ok(result(json!({"tools": column("tools", "tool")})))
    }
    async fn call_tool(&self, r: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, Failure> {
        let row = row("tools", "tool", "name", &r.name).ok_or(ErrorData::invalid_params(format!("Unknown tool: {}", r.name), None))?;
        if !row["result"].is_null() {
            return Ok(result::<CallToolResult>(row["result"].clone()).into());
        }
        if row["asks"].is_null() {
            let args = r.arguments.map(Value::Object).unwrap_or(json!({}));
            return Ok(text(run(&r.name, &args, &context).await).into());
        }
        if modern(&context) && row["plain"].is_null() {
            return Ok(match r.input_responses {
                Some(answers) => text(to_value(answers).unwrap().to_string()).into(),
                None => InputRequiredResult::new(Some(read(row["asks"].clone())), None).into(),
            });
        }
        let mut answers = json!({});
        for (key, request) in row["asks"].as_object().unwrap() {
            answers[key] = ask(request, &context.peer).await.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
        }
        Ok(text(answers.to_string()).into())
    }
    async fn list_resources(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListResourcesResult, Failure> {
        Ok(result(json!({"resources": column("resources", "resource")})))
    }
    async fn list_resource_templates(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListResourceTemplatesResult, Failure> {
        Ok(result(json!({"resourceTemplates": [OFFERED["template"]]})))
    }
    async fn read_resource(&self, r: ReadResourceRequestParams, _: RequestContext<RoleServer>) -> Result<ReadResourceResponse, Failure> {
        let id = r.uri.strip_prefix("test://template/").and_then(|s| s.strip_suffix("/data"));
        let found = match id {
            Some(id) => Some(fill(&OFFERED["templateContents"], &json!({"id": id}))),
            None => row("resources", "resource", "uri", &r.uri).map(|row| row["contents"].clone()),
        };
        let contents = found.ok_or(ErrorData::resource_not_found(format!("Unknown resource: {}", r.uri), None))?;
        Ok(result::<ReadResourceResult>(json!({"contents": [contents]})).into())
    }
    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, Failure> {
        Ok(result(json!({"prompts": column("prompts", "prompt")})))
    }
    async fn get_prompt(&self, r: GetPromptRequestParams, _: RequestContext<RoleServer>) -> Result<GetPromptResponse, Failure> {
        let row = row("prompts", "prompt", "name", &r.name).ok_or(ErrorData::invalid_params("Unknown prompt", None))?;
        let messages = fill(&row["messages"], &to_value(r.arguments).unwrap());
        Ok(result::<GetPromptResult>(json!({"messages": messages})).into())
    }
    async fn complete(&self, r: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, Failure> {
        let values: Vec<_> = ["paris", "park", "party"].into_iter().filter(|w| w.starts_with(&r.argument.value)).collect();
        Ok(result(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}})))
    }
    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), Failure> {
        Ok(())
    }
    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), Failure> {
        Ok(())
    }
    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), Failure> {
        Ok(())
    }
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
    async fn listen(&self, context: SubscriptionContext) -> Result<(), Failure> {
        let mut touched = TOUCHED.subscribe();
        loop {
            tokio::select! {
                _ = context.cancelled() => return Ok(()),
                Ok(uri) = touched.recv() => { let _ = context.sink().notify_resource_updated(uri).await; }
            }
        }
    }
}

// --- the client ---

#[derive(Clone, Default)]
struct Client {
    heard: std::sync::Arc<Mutex<Vec<(&'static str, Value)>>>,
}

impl Client {
    fn hear(&self, what: &'static str, value: Value) {
        self.heard.lock().unwrap().push((what, value));
    }
    fn take(&self, what: &str) -> Value {
        let mut heard = self.heard.lock().unwrap();
        let taken = heard.iter().filter(|h| h.0 == what).map(|h| h.1.clone()).collect();
        heard.clear();
        taken
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        read(json!({"protocolVersion": "2025-11-25", "clientInfo": {"name": "peer-client", "version": "1"},
            "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}}}))
    }
    async fn create_elicitation(&self, _: ElicitRequestParams, _: RequestContext<RoleClient>) -> Result<ElicitResult, Failure> {
        Ok(read(json!({"action": "accept", "content": {"username": "ada", "email": "ada@example.com", "name": "ada"}})))
    }
    async fn create_message(&self, p: CreateMessageRequestParams, _: RequestContext<RoleClient>) -> Result<CreateMessageResult, Failure> {
        let asked = to_value(&p).unwrap()["messages"][0]["content"]["text"].as_str().unwrap_or("").to_string();
        Ok(read(json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": format!("sampled: {asked}")}})))
    }
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, Failure> {
        Ok(read(json!({"roots": [{"uri": "file:///peers", "name": "peers"}]})))
    }
    async fn on_logging_message(&self, p: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let p = to_value(&p).unwrap();
        self.hear("log", json!([p["level"], p["data"]]));
    }
    async fn on_resource_updated(&self, p: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear("update", to_value(&p).unwrap());
    }
}

fn given<T: serde::Serialize>(result: Result<T, ServiceError>) -> Result<Value, String> {
    result.map(|r| to_value(r).unwrap()).map_err(|e| e.to_string())
}

async fn call(s: &RunningService<RoleClient, Client>, step: &Value) -> Result<Value, String> {
    let args = if step["args"].is_object() { step["args"].clone() } else { json!({}) };
    given(s.call_tool(read(json!({"name": step["name"], "arguments": args}))).await)
}

async fn act(s: &RunningService<RoleClient, Client>, c: &Client, step: &Value) -> Result<Value, String> {
    let info = to_value(s.peer_info()).unwrap();
    let uri = json!({"uri": step["uri"]});
    match step["op"].as_str().unwrap() {
        "version" => Ok(info["protocolVersion"].clone()),
        "capabilities" => Ok(info["capabilities"].clone()),
        "server" => Ok(info["serverInfo"].clone()),
        "list" => match step["what"].as_str().unwrap() {
            "tools" => given(s.list_tools(None).await),
            "resources" => given(s.list_resources(None).await),
            "templates" => given(s.list_resource_templates(None).await),
            _ => given(s.list_prompts(None).await),
        },
        "call" => call(s, step).await,
        "read" => given(s.read_resource(read(uri)).await),
        "get" => given(s.get_prompt(read(json!({"name": step["name"], "arguments": step["args"]}))).await),
        "complete" => given(s.complete(read(step["params"].clone())).await),
        "log" => {
            given(s.set_level(read(json!({"level": "debug"}))).await)?;
            call(s, step).await?;
            sleep(Duration::from_millis(300)).await;
            Ok(c.take("log"))
        }
        "subscribe" => {
            given(s.subscribe(read(uri.clone())).await)?;
            call(s, &step["touch"]).await?;
            for _ in 0..50 {
                if !c.heard.lock().unwrap().is_empty() {
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
            given(s.unsubscribe(read(uri)).await)?;
            Ok(c.take("update"))
        }
        _ => {
            let failed = call(s, &step["die"]).await.map_or(true, |r| r["isError"] == true);
            loop {
                match call(s, &step["echo"]).await {
                    Ok(back) if back["isError"] != true => return Ok(json!({"back": back, "failed": failed})),
                    _ => sleep(Duration::from_millis(300)).await,
                }
            }
        }
    }
}

fn say(step: &Value, what: &str, value: Value) {
    println!("{}", json!({"step": step, what: value}));
}

async fn drive(job: Value) {
    let handler = Client::default();
    let connected = if job["way"] == "stdio" {
        let command: Vec<String> = read(job["command"].clone());
        let mut child = tokio::process::Command::new(&command[0]);
        child.args(&command[1..]);
        handler.clone().serve(TokioChildProcess::new(child).unwrap()).await
    } else {
        handler.clone().serve(StreamableHttpClientTransport::from_uri(job["url"].as_str().unwrap())).await
    };
    let session = match connected {
        Ok(session) => session,
        Err(e) => return say(&json!("connect"), "error", json!({"message": e.to_string()})),
    };
    for step in job["steps"].as_array().unwrap() {
        match within(act(&session, &handler, step)).await {
            Ok(got) => say(&step["step"], "got", got),
            Err(message) => say(&step["step"], "error", json!({"message": message})),
        }
    }
    std::process::exit(0);
}

async fn within(work: impl Future<Output = Result<Value, String>>) -> Result<Value, String> {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap_or(Err("no answer in time".into()))
}

#[tokio::main]
async fn main() {
    let how = std::env::args().nth(1).unwrap();
    match how.as_str() {
        "stdio" => {
            let running = Server.serve(rmcp::transport::stdio()).await.unwrap();
            let _ = running.waiting().await;
        }
        "http" => {
            let service = StreamableHttpService::<Server, LocalSessionManager>::new(|| Ok(Server), Default::default(), Default::default());
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            println!("listening on http://{}/mcp", listener.local_addr().unwrap());
            axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.unwrap();
        }
        _ => drive(serde_json::from_str(&how).unwrap()).await,
    }
}
