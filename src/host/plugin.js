// memctl: gives the events of a session to `memctl hook opencode`, and its answers to the model.
// `memctl hooks uninstall opencode` removes this file; changes in it are lost at the next installation.
import { spawn } from "node:child_process"

const COMMAND = [] // memctl

const ask = (event) =>
  new Promise((resolve) => {
    let said = ""
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"], timeout: 5000 })
    const done = () => {
      try {
        resolve(JSON.parse(said).hookSpecificOutput ?? {})
      } catch {
        resolve({})
      }
    }
    child.on("error", done)
    child.on("close", done)
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (said += data))
    child.stdin.end(JSON.stringify(event))
  })

export const Memctl = async ({ directory }) => {
  const rules = new Map() // session: text for its system prompt
  const asked = new Map() // session: question about its last message
  const notes = new Map() // call: text for behind its output
  const event = (name, session, more) => ask({ hook_event_name: name, session_id: session, cwd: directory, ...more })
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!rules.has(sessionID)) rules.set(sessionID, (await event("SessionStart", sessionID)).additionalContext ?? "")
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      const answer = await event("UserPromptSubmit", sessionID, { prompt: prompt.join("\n") })
      asked.set(sessionID, answer.additionalContext ?? "")
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (rules.get(sessionID)) system.push(rules.get(sessionID))
      if (asked.get(sessionID)) system.push(asked.get(sessionID))
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const answer = await event("PreToolUse", sessionID, { tool_name: tool, tool_input: args })
      if (answer.permissionDecision === "deny") throw new Error(answer.permissionDecisionReason)
      if (answer.additionalContext) notes.set(callID, answer.additionalContext)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const outcome = { tool_response: result.output, exit_code: result.metadata?.exit }
      const answer = await event("PostToolUse", sessionID, { tool_name: tool, tool_input: args, ...outcome })
      const told = [notes.get(callID), answer.additionalContext].filter(Boolean)
      notes.delete(callID)
      if (told.length > 0) result.output = [result.output, ...told].join("\n")
    },
    event: async ({ event: { type, properties } }) => {
      if (type === "session.compacted") await event("SessionStart", properties.sessionID, { source: "compact" })
      if (type !== "session.deleted") return
      rules.delete(properties.info.id)
      await event("SessionEnd", properties.info.id)
    },
  }
}
