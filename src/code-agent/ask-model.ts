import type { BaseMessage } from '@langchain/core/messages'
import { callerOf, callModel, isLangChainModel, type ModelInput } from '../llm/index.ts'

/** The maximum characters of a reply. A longer reply counts as a mistake of the model. */
export const MAX_REPLY_CHARS: number = 1024 * 1024

/** The call of a model with the messages of a thread. */
export type AskModel = (messages: readonly BaseMessage[], signal: AbortSignal) => Promise<string>

/**
 * Returns the call of a model. Chat models of LangChain get the messages, with their images. All others get one text.
 * @param timeoutMs the maximum time of one reply.
 * @throws TypeError if the value is not a model.
 */
export function askerOf(model: ModelInput, timeoutMs: number): AskModel {
  const caller = callerOf(model)
  return async (messages, signal) => {
    const chat = isLangChainModel(model)
      ? callerOf({ invoke: (_, options) => model.invoke(messages as unknown as string, options) })
      : caller
    const { text } = await callModel(chat, promptOf(messages), { signal, timeoutMs })
    return text
  }
}

const SPEAKERS: Readonly<Record<string, string>> = { system: '', human: 'User:\n', ai: 'You:\n' }

/** The messages as one text. */
function promptOf(messages: readonly BaseMessage[]): string {
  return messages.map((message) => `${SPEAKERS[message.getType()] ?? ''}${textOf(message)}`).join('\n\n')
}

function textOf({ content }: BaseMessage): string {
  if (typeof content === 'string') return content
  return content
    .map((part) => ('text' in part && typeof part.text === 'string' ? part.text : `[${part.type}]`))
    .join('\n')
}
