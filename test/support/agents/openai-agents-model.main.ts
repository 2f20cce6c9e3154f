import { type Model, type ModelResponse, Usage } from '@openai/agents'
import { SCRIPT, TOOL_NAME, WORDS } from './scripted.ts'

const answers: ModelResponse['output'][] = [
  [
    {
      type: 'function_call',
      callId: 'call-1',
      name: TOOL_NAME,
      status: 'completed',
      arguments: JSON.stringify({ script: SCRIPT }),
    },
  ],
  [
    {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: WORDS.join('') }],
    },
  ],
]

/** A model of OpenAI Agents that answers with a script, then with words. */
export const model: Model = {
  getResponse() {
    return Promise.resolve({ usage: new Usage(), output: answers.shift() ?? [] })
  },
  getStreamedResponse() {
    throw new Error('this model does not stream')
  },
}
