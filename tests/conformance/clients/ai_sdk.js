// The AI SDK, whose client shares no code with the protocol's own SDKs.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { report, task } from "./steps.js";

const [command, ...args] = task.command ?? [];
const transport = task.url ? { type: "http", url: task.url } : new StdioTransport({ command, args, env: process.env });
const client = await createMCPClient({ transport });
const callTool = async ({ name, arguments: given }) => {
  const tools = await client.tools();
  return tools[name].execute(given, { toolCallId: name, messages: [] });
};
await report({ listTools: () => client.listTools(), callTool, close: () => client.close() }, null);
