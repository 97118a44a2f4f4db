// The TypeScript SDK of the revisions with sessions.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { report, task } from "./steps.js";

let protocol;

// The client tells only its transport which revision was agreed upon.
function listening(transport) {
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    protocol = version;
    tell?.(version);
  };
  return transport;
}

const [command, ...args] = task.command ?? [];
const transport = task.url
  ? new StreamableHTTPClientTransport(new URL(task.url))
  : new StdioClientTransport({ command, args, env: process.env });
const client = new Client({ name: "typescript-sdk-1", version: "1" });
await client.connect(listening(transport));
await report(client, protocol);
