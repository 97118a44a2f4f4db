// The TypeScript SDK of the revision without sessions; it asks the server which one it speaks.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { report, task } from "./steps.js";

const [command, ...args] = task.command ?? [];
const transport = task.url
  ? new StreamableHTTPClientTransport(new URL(task.url))
  : new StdioClientTransport({ command, args, env: process.env });
const client = new Client({ name: "typescript-sdk-2", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
await report(client, client.getNegotiatedProtocolVersion());
