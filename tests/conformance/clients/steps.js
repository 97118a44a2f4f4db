// What every client does: list the tools, make the calls it is given, and print what it saw as one line of JSON.

// {"url": …} or {"command": [program, …]}, and {"calls": [{"name": …, "arguments": …}]}
export const task = JSON.parse(process.argv[2]);

export async function report(client, protocol) {
  const { tools } = await client.listTools();
  const answers = [];
  for (const call of task.calls) answers.push(await client.callTool(call));
  console.log(JSON.stringify({ protocol, tools: tools.map((tool) => tool.name), answers }));
  await client.close();
}
