import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, type BaseMessage } from '@langchain/core/messages'
import type { ChatResult } from '@langchain/core/outputs'
import { SCRIPT, TOOL_NAME, WORDS } from './scripted.ts'

/** A chat model that answers with a script, then with words. */
class ScriptedChatModel extends BaseChatModel {
  _llmType(): string {
    return 'scripted'
  }

  override bindTools(): this {
    return this
  }

  _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const call = { id: 'call-1', name: TOOL_NAME, args: { script: SCRIPT }, type: 'tool_call' as const }
    const message =
      messages.length === 1 ? new AIMessage({ content: '', tool_calls: [call] }) : new AIMessage(WORDS.join(''))
    return Promise.resolve({ generations: [{ text: message.text, message }] })
  }
}

export const model: BaseChatModel = new ScriptedChatModel({})
