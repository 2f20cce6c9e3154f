import type * as langChainMessages from '@langchain/core/messages'
import type { BaseMessage } from '@langchain/core/messages'
import { sizeUpTo, truncateMiddle } from '../support/index.ts'
import type { CodeAgentRecord } from './code-proposal.ts'

/**
 * The maximum size of the earlier replies and outputs of a thread together, in characters, and of the scripts in its records, because
 * each step writes all of them into a checkpoint.
 */
const MAX_KEPT = 4 * 1024 * 1024
/** The length to which texts are cut. */
const CUT_CHARS = 2000
const LEFT_OUT = '[This output of an earlier script is no longer kept.]'

/**
 * Returns shorter messages that replace the oldest ones beyond the maximum, by their ids. Messages of the user stay.
 * @param messages all messages of the thread, which the model has seen.
 */
export function cutMessages(
  { AIMessage, ToolMessage }: Pick<typeof langChainMessages, 'AIMessage' | 'ToolMessage'>,
  messages: readonly BaseMessage[],
): readonly BaseMessage[] {
  const ofAgent = messages.filter((message) => message.getType() !== 'human')
  return findExcess(ofAgent, ({ content }) => content).flatMap((message): BaseMessage[] => {
    const id = { ...(message.id !== undefined && { id: message.id }) }
    if (AIMessage.isInstance(message))
      return [new AIMessage({ content: truncateMiddle(message.text, CUT_CHARS), ...id })]
    if (!ToolMessage.isInstance(message)) return []
    const { tool_call_id, name } = message
    return [new ToolMessage({ content: LEFT_OUT, tool_call_id, ...(name !== undefined && { name }), ...id })]
  })
}

/** Returns the records, with the oldest scripts beyond the maximum cut in the middle. */
export function cutRecords(records: readonly CodeAgentRecord[]): readonly CodeAgentRecord[] {
  const runs = records.filter((record) => record.type === 'run')
  const tooOld = new Set<CodeAgentRecord>(findExcess(runs, ({ script }) => script))
  return records.map((record) =>
    record.type === 'run' && tooOld.has(record)
      ? { ...record, script: truncateMiddle(record.script, CUT_CHARS) }
      : record,
  )
}

/** Returns the items that exceed the maximum, counted from the newest one. The newest item is not counted; it and short items always stay. */

function findExcess<T>(items: readonly T[], contentOf: (item: T) => unknown): readonly T[] {
  let left = MAX_KEPT
  return items
    .slice(0, -1)
    .toReversed()
    .filter((item) => {
      const size = sizeUpTo(contentOf(item), MAX_KEPT)
      if (size > left && size > CUT_CHARS + 100) return true
      left -= size
      return false
    })
}
