// A client on the TypeScript SDK 1.x, as most hosts that are out there embed it. Its one argument says how to connect.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { session } from "./session.mjs";

const { transport, url, command, args, env } = JSON.parse(process.argv[2]);
const transports = {
  stdio: () => new StdioClientTransport({ command, args, env, stderr: "inherit" }),
  http: () => new StreamableHTTPClientTransport(new URL(url)),
  sse: () => new SSEClientTransport(new URL(url)),
};

const client = new Client({ name: "sdk1", version: "1" }, { capabilities: {} });
const way = transports[transport]();
let negotiated = null;
way.setProtocolVersion = ((original) => (version) => {
  negotiated = version;
  original?.call(way, version);
})(way.setProtocolVersion);
await client.connect(way);
console.log(JSON.stringify(await session(client, () => negotiated)));
