// What webmcp.js adds to a page whose browser has no WebMCP. It is imported for its effect:
//   import 'rialto-page/webmcp';

export interface ModelContextTool {
  name: string;
  title?: string;
  description: string;
  /** JSON Schema of the input. */
  inputSchema?: object;
  annotations?: { readOnlyHint?: boolean; untrustedContentHint?: boolean; consequentialHint?: boolean };
  execute(input: any, context: { signal: AbortSignal }): unknown;
}

export interface RegisteredTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema?: object;
  readonly annotations?: ModelContextTool['annotations'];
  readonly origin: string;
}

export interface ModelContext extends EventTarget {
  ontoolchange: ((event: Event) => void) | null;
  registerTool(tool: ModelContextTool, options?: { signal?: AbortSignal }): Promise<void>;
  getTools(): Promise<RegisteredTool[]>;
  executeTool(tool: RegisteredTool, input?: object, options?: { signal?: AbortSignal }): Promise<string>;
  /** @deprecated abort the signal that the tool was registered with */
  unregisterTool(name: string): void;
  /** @deprecated register tools one by one */
  provideContext(context: { tools: ModelContextTool[] }): void;
  /** @deprecated */
  clearContext(): void;
}

declare global {
  interface Document {
    readonly modelContext: ModelContext;
  }
  interface Navigator {
    /** @deprecated moved to document.modelContext */
    readonly modelContext: ModelContext;
  }
}
