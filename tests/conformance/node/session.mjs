// What any client does first, the same on both SDKs: looks, stores, recalls, and makes a mistake.
import { randomUUID } from "node:crypto";

export async function session(client, version) {
  const { tools } = await client.listTools();
  const fact = `Lighthouse ${randomUUID()} is lit at dusk.`;
  const stored = await client.callTool({ name: "memory_store", arguments: { content: fact, namespace: "harbour" } });
  // The SDK checks structuredContent against the tool's outputSchema, and throws if it does not fit.
  const recalled = await client.callTool({ name: "memory_recall", arguments: { query: fact, limit: 1 } });
  const mistaken = await client.callTool({ name: "memory_recall", arguments: { query: fact, limit: 0 } });
  const { resources } = await client.listResources();
  const status = await client.readResource({ uri: "memory://status" });
  const { prompts } = await client.listPrompts();
  const seen = {
    protocol: version(),
    server: client.getServerVersion()?.name,
    instructed: Boolean(client.getInstructions()),
    tools: tools.map((tool) => tool.name),
    resources: resources.map((resource) => resource.uri),
    prompts: prompts.map((prompt) => prompt.name),
    status: typeof JSON.parse(status.contents[0].text),
    stored: stored.structuredContent?.stored?.[0]?.id ?? null,
    fact,
    recalled: recalled.structuredContent?.memories?.map((memory) => [memory.id, memory.content]) ?? null,
    refused: mistaken.isError === true,
  };
  await client.close();
  return seen;
}
