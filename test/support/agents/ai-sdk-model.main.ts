import { MockLanguageModelV4, simulateReadableStream } from 'ai/test'
import { SCRIPT, SCRIPT_WITH_PROGRESS, TOOL_NAME, WORDS } from './scripted.ts'

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
}
const called = { unified: 'tool-calls', raw: 'tool-calls' } as const
const stopped = { unified: 'stop', raw: 'stop' } as const

/** A model of the AI SDK that answers with a script, then with words. */
export const model: MockLanguageModelV4 = new MockLanguageModelV4({
  doGenerate: [
    { content: [callOf(SCRIPT)], finishReason: called, usage, warnings: [] },
    { content: [{ type: 'text', text: WORDS.join('') }], finishReason: stopped, usage, warnings: [] },
  ],
  doStream: [
    {
      stream: simulateReadableStream({
        chunks: [callOf(SCRIPT_WITH_PROGRESS), { type: 'finish', finishReason: called, usage }],
      }),
    },
    {
      stream: simulateReadableStream({
        chunks: [
          { type: 'text-start', id: '1' },
          ...WORDS.map((delta) => ({ type: 'text-delta' as const, id: '1', delta })),
          { type: 'text-end', id: '1' },
          { type: 'finish', finishReason: stopped, usage },
        ],
      }),
    },
  ],
})

function callOf(script: string): { type: 'tool-call'; toolCallId: string; toolName: string; input: string } {
  return { type: 'tool-call', toolCallId: 'call-1', toolName: TOOL_NAME, input: JSON.stringify({ script }) }
}
