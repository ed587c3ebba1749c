// A Supabase project around a prepared database, as far as clients of the source documents need one: an address
// for PostgREST, the edge functions, the users of tokens, and broadcasts. Then an application asks it, by
// supabase-js. What came is printed as one line of JSON.
//
// The edge functions are those of the source document, letter for letter. `embeddings` stands for OpenAI.

import { createClient } from "@supabase/supabase-js";

const { postgrest, embeddings, embeddingsKey, secret, ann, ben } = JSON.parse(Deno.args[0]);
const bytes = (text) => new TextEncoder().encode(text);
const base64url = (data) => btoa(String.fromCharCode(...new Uint8Array(data)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const key = await crypto.subtle.importKey(
  "raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

async function token(claims) {
  const text = (value) => base64url(bytes(JSON.stringify(value)));
  const exp = Math.floor(Date.now() / 1000) + 3600;
  const signed = `${text({ alg: "HS256", typ: "JWT" })}.${text({ exp, ...claims })}`;
  return `${signed}.${base64url(await crypto.subtle.sign("HMAC", key, bytes(signed)))}`;
}

const tokens = new Map();
for (const sub of [ann, ben]) tokens.set(await token({ role: "authenticated", sub }), sub);
const [annToken, benToken] = tokens.keys();
const anonKey = await token({ role: "anon" });
const serviceKey = await token({ role: "service_role" });

const functions = {};
const broadcasts = [];
const services = {
  rest: (request, url) => {
    const headers = new Headers(request.headers);
    headers.delete("host");
    return fetch(postgrest + url.pathname.slice("/rest/v1".length) + url.search, {
      method: request.method, headers, body: request.body,
    });
  },
  auth: (request) => {
    const id = tokens.get(request.headers.get("authorization").replace("Bearer ", ""));
    return id ? Response.json({ id, aud: "authenticated" }) : Response.json({ msg: "invalid JWT" }, { status: 401 });
  },
  functions: (request, url) => functions[url.pathname.split("/").at(-1)](request),
  realtime: async (request) => {
    broadcasts.push(...(await request.json()).messages);
    return new Response(null, { status: 202 });
  },
};
const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
  const url = new URL(request.url);
  return services[url.pathname.split("/")[1]](request, url);
});
const project = `http://127.0.0.1:${server.addr.port}`;

const outside = globalThis.fetch;
globalThis.fetch = (input, init) =>
  outside(input === "https://api.openai.com/v1/embeddings" ? embeddings : input, init);
Deno.env.set("SUPABASE_URL", project);
Deno.env.set("SUPABASE_SERVICE_ROLE_KEY", serviceKey);
Deno.env.set("OPENAI_API_KEY", embeddingsKey);
for (const name of ["agent-memory-read", "agent-memory-write"]) {
  globalThis.serveFunction = (handler) => functions[name] = handler;
  await import(`./${name}.ts`);
}

const client = (token) => createClient(project, anonKey, token ? { accessToken: async () => token } : {});
const [annClient, benClient, nobody] = [client(annToken), client(benToken), client(null)];
const service = createClient(project, serviceKey);
const embed = async (input) => {
  const response = await fetch("https://api.openai.com/v1/embeddings", {
    method: "POST",
    headers: { authorization: `Bearer ${embeddingsKey}`, "content-type": "application/json" },
    body: JSON.stringify({ input }),
  });
  return (await response.json()).data[0].embedding;
};
const invoke = async (who, name, body) => {
  const { data, error } = await who.functions.invoke(name, { body });
  return { data, status: error?.context?.status, body: await error?.context?.text() };
};

const out = {};
const voice = "Voice: calm and friendly, never salesy";
const question = { query: "how should we sound?", match_threshold: 0.1 };
out.written = await invoke(annClient, "agent-memory-write", { content: voice, memory_type: "brand_memory" });
out.read = await invoke(annClient, "agent-memory-read", question);
out.readAtDefault = await invoke(annClient, "agent-memory-read", { query: question.query });
out.readByAnother = await invoke(benClient, "agent-memory-read", question);
out.readByNobody = await invoke(nobody, "agent-memory-read", question);
out.badType = await invoke(annClient, "agent-memory-write", { content: voice, memory_type: "brand" });
out.broadcasts = broadcasts;

const memory = { content: "Preferred video format: portrait 9:16", memory_type: "user_preferences" };
const inserted = await annClient.from("agent_memory").insert({ user_id: ann, ...memory }).select().single();
out.inserted = inserted;
out.forAnother = await annClient.from("agent_memory").insert({ user_id: ben, ...memory });
out.selected = await annClient.from("agent_memory").select("content").order("created_at");
out.selectedByAnother = await benClient.from("agent_memory").select("content");
out.selectedByNobody = await nobody.from("agent_memory").select("content");
out.takenAway = await benClient.from("agent_memory").delete().eq("id", inserted.data?.id).select();
out.changed = await annClient.from("agent_memory").update({ content: "Format: square" })
  .eq("id", inserted.data?.id).select("content").single();
out.synced = await annClient.rpc("match_memory",
  { query_embedding: await embed("which competitor has cheaper plans?"), match_threshold: 0.1 });
out.matchedByAnother = await benClient.rpc("match_memory",
  { query_embedding: await embed("which competitor has cheaper plans?"), match_threshold: -1, filter_user_id: ann });

const lesson = {
  user_id: ann,
  content: "Add a column to a table: name its data type",
  metadata: { status: "procedure_learned", data: {
    procedure_name: "Add a column to a table", semantic_description: "How to add a column to a table",
    learned_procedure_steps: ["Name the data type of the column"] } },
  embedding: await embed("Add a column to a table: name its data type"),
};
out.learned = await service.from("context_eng_memories").insert(lesson).select("id,metadata").single();
// What the failure analyst of n8n sends.
const { metadata } = lesson;
out.analysed = await annClient.from("context_eng_memories").insert({ metadata }).select("id,content,metadata").single();
const search = { query_text: "Procedure for adding a new column",
  query_embedding: await embed("Procedure for adding a new column"), match_count: 3 };
out.hybrid = await annClient.rpc("hybrid_search_context_eng_memories", search);
out.hybridByAnother = await benClient.rpc("hybrid_search_context_eng_memories", search);
out.hybridByService = await service.rpc("hybrid_search_context_eng_memories", { ...search, match_count: 1 })
  .select("content,rrf_score").single();
console.log(JSON.stringify(out));
Deno.exit();
