// Drives an MCP server with the official TypeScript SDK, as support/mcp_client_program.py does with that for Python:
//   node drive_mcp.mjs CALLS FOLDER PROGRAM ARGUMENT...
// CALLS is JSON: [{name, arguments, options}], options being those of the SDK. Prints one JSON object per line: the
// progress of a call, its result or its error; at the end {"closed": true}. "stay": true in the last call: stays
// connected until it is killed.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [calls, cwd, command, ...args] = process.argv.slice(2);
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, cwd, env: process.env }));
for (const { name, arguments: given, options, stay } of JSON.parse(calls)) {
  try {
    const onprogress = ({ message }) => say({ progress: message });
    const result = await client.callTool({ name, arguments: given }, undefined, { ...options, onprogress });
    say({ result: result.content.map(({ text }) => text), isError: result.isError === true });
  } catch (error) {
    say({ error: error.message, code: error.code });
  }
  if (stay) await new Promise((_, reject) => setTimeout(reject, 600_000));
}
await client.close();
say({ closed: true });
