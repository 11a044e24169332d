// Types of rialto.js, imported or as window.rialto.

export interface RialtoTool<Arguments = Record<string, unknown>> {
  name: string;
  title?: string;
  description?: string;
  /** JSON Schema of the arguments. */
  inputSchema?: object;
  /** What the tool needs, such as "dom:write"; the user is asked. */
  capabilities?: string[];
  /** Milliseconds that a call may take. */
  timeout?: number;
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean };
  handler(args: Arguments, context: { signal: AbortSignal }): unknown | Promise<unknown>;
}

export type RialtoConsent = 'once' | 'session' | 'persistent' | 'deny';

export interface RialtoOptions {
  /** Address of the bridge; ws://127.0.0.1:8765 when not given. */
  url?: string;
  /** Name of the session, 1 to 128 of letters, digits and . _ : -; the tab's own when not given. */
  session?: string;
  /** Pairing token, where the bridge wants one. */
  token?: string;
  /** Asks the user; a dialog when not given. The signal is aborted when the answer is not wanted any more. */
  consent?(capabilities: string[], context: { signal: AbortSignal }): RialtoConsent | Promise<RialtoConsent>;
}

/** Events: connected, disconnected, call (detail: {name, arguments}). */
export declare class Rialto extends EventTarget {
  readonly connected: boolean;
  readonly session: string | undefined;
  connect(options?: RialtoOptions): this;
  disconnect(): void;
  /** Closes the connection until resume(); the script does so when the page is left. */
  pause(): void;
  resume(): void;
  hurry(): void;
  /** Returns a function that unregisters the tool. */
  registerTool<A>(tool: RialtoTool<A>): () => void;
  unregisterTool(name: string): void;
  tools(): string[];
  grant(capabilities: string[], type?: 'once' | 'session' | 'persistent'): Promise<{ granted: string[] }>;
  revoke(capabilities: string[]): Promise<{ granted: string[] }>;
}

/** The instance of this page, also window.rialto. */
export declare const rialto: Rialto;
export default rialto;

declare global {
  interface Window {
    rialto: Rialto;
    Rialto: typeof Rialto;
  }
}
