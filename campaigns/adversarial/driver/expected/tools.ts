import assert from 'node:assert/strict'
import { createSandglass } from '../../../../src/sandglass.ts'
import type { SandboxEngine } from '../../../../src/sandbox/index.ts'
import { replayChannel, type ReplaySandbox, wireLines } from '../../../../src/testing/index.ts'
import { defineTool, prepareTools } from '../../../../src/tools/index.ts'
import { answerOf } from '../answer.ts'
import { readCases } from '../case.ts'
import { echoTool } from '../case-tools.ts'
import type { Assertion } from '../run-case.ts'

/** Assertions for the cases of the tool bridge whose expectation has no keys. */
export const TOOLS: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ['RPC-016', rejectsOrMapsToolNames],
  ['RPC-018', usesCallIdsOnce],
])

const TAKEN: ReadonlySet<string> = new Set(['emit_result', 'print', '__import__', 'None', 'class'])

/** A name with another character is mapped to an identifier and listed as renamed; any other bad name is rejected. */
async function rejectsOrMapsToolNames(): Promise<void> {
  await Promise.resolve()
  const { tools } = materialOf('RPC-016') as { tools: string[] }
  const outcomes = tools.map((name) => {
    try {
      const tool = defineTool({ name, description: '', input: { type: 'object' }, execute: () => null })
      const set = prepareTools([tool])
      const [mapped = ''] = set.tools.keys()
      assert.match(mapped, /^[A-Za-z_][A-Za-z0-9_]*$/)
      assert.ok(!TAKEN.has(mapped), mapped)
      assert.deepEqual(set.renamed, [{ from: name, to: mapped }])
      return mapped
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      return 'refused'
    }
  })
  // emit_result, print, __import__, None, class, a-b, a.b, an empty name, 1,000 letters, fetch in wide letters, fetch and a newline
  const fourRefused = Array.from({ length: 4 }, () => 'refused')
  assert.deepEqual(outcomes, [...fourRefused, 'class_', 'a_b', 'a_b', 'refused', 'refused', 'fetch', 'fetch_'])
}

/** Sends the frames of the case with the id of the run, as a harness does: a call id is used only once. */
async function usesCallIdsOnce(): Promise<void> {
  const inputs: unknown[] = []
  const frames = (materialOf('RPC-018') as object[]).map((frame) => ({ execution_id: 'bridge-run', ...frame }))
  let replay: ReplaySandbox | undefined
  const engine: SandboxEngine = {
    name: 'hostile',
    create: async () => Promise.resolve((replay ??= replayChannel(wireLines(...frames)))),
    report: () => Promise.reject(new Error('the hostile engine has nothing to report')),
    close: () => Promise.resolve(),
  }
  await using sandglass = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
  const tools = [echoTool((input) => inputs.push(input))]
  await answerOf(sandglass, 'emit_result(0)', { executionId: 'bridge-run', tools })
  assert.deepEqual(inputs, [{ x: 1 }])
  const answered = replay?.sent.flatMap((frame) => (frame.type === 'tool_result' ? [frame.id] : [])) ?? []
  assert.ok(answered.length <= 1 && answered.every((id) => id === 'a'), answered.join())
}

function materialOf(id: string): unknown {
  return readCases().find((given) => given.id === id)?.script_or_input
}
