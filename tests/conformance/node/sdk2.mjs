// A client on the TypeScript SDK 2.x, in the protocol era it is told. Its one argument says how to connect.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { session } from "./session.mjs";

const { transport, url, command, args, env, pin } = JSON.parse(process.argv[2]);
const transports = {
  stdio: () => new StdioClientTransport({ command, args, env, stderr: "inherit" }),
  http: () => new StreamableHTTPClientTransport(new URL(url)),
  sse: () => new SSEClientTransport(new URL(url)),
};

const era = pin ? { versionNegotiation: { mode: { pin } } } : {};
const client = new Client({ name: "sdk2", version: "1" }, { capabilities: {}, ...era });
await client.connect(transports[transport]());
console.log(JSON.stringify(await session(client, () => client.getNegotiatedProtocolVersion())));
