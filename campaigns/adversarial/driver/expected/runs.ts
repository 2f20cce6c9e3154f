import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDirectory } from '../../../../test/support/state-directory.ts'
import { answerOf, describeAnswer } from '../answer.ts'
import { readCases } from '../case.ts'
import { evaluateText, isPythonExpression, scriptOf } from '../material.ts'
import type { Assertion } from '../run-case.ts'
import type { CaseContext } from '../case-state.ts'

/** Assertions for cases that run scripts and whose expectation is not written as keys. */
export const RUNS: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ['CTL-048', restoresStubsForNextRun],
  ['PRO-041', rejectsOrKeepsHostileExecutionIds],
])

const TOOLS = `def call_tool():
    return 'the real tool'
`

/** A script replaces functions of a tool file and of the harness; the next run on the same sandbox gets the originals. */
async function restoresStubsForNextRun({ engine }: CaseContext): Promise<void> {
  const toolsDir = openDirectory('tools')
  writeFileSync(join(toolsDir, 'tool.py'), TOOLS)
  await using sandglass = await engine.open({ poolSize: 1, toolsDir })
  const attack = `${scriptOf(caseOf('CTL-048'))}
call_tool.__code__ = (lambda: {'pwned': True}).__code__
`
  const first = await answerOf(sandglass, attack, {})
  assert.equal(first.result?.finalData, 'ok', describeAnswer(first))
  const next = await answerOf(sandglass, 'emit_result(call_tool())', { sandboxId: first.result.sandbox.id })
  assert.equal(next.result?.finalData, 'the real tool', describeAnswer(next))
  assert.equal(next.result.sandbox.id, first.result.sandbox.id)
  rmSync(toolsDir, { recursive: true })
}

async function rejectsOrKeepsHostileExecutionIds({ engine, shared }: CaseContext): Promise<void> {
  const values = (caseOf('PRO-041').script_or_input as unknown[]).map((value) =>
    isPythonExpression(value) ? evaluateText(value) : value,
  )
  for (const value of values) {
    const answer = await shared.run('emit_result("mine")', { executionId: value as string })
    if (answer.result === null) {
      assert.equal(answer.errorKind, 'invalid_request', describeAnswer(answer))
      assert.ok((answer.thrown?.message.length ?? 0) < 1000, 'the error message repeats the whole id')
      continue
    }
    assert.equal(answer.result.finalData, 'mine', describeAnswer(answer))
    if (value === null) assert.match(answer.result.executionId, /^[0-9a-f-]{36}$/)
    else assert.equal(answer.result.executionId, value)
    assert.ok(answer.events.every(({ executionId }) => executionId === answer.result?.executionId))
  }
  const names = engine.namesOnHost()
  const texts = values.filter((value) => typeof value === 'string' && value.trim().length > 2).map(String)
  const made = names.filter((name) => texts.some((text) => name.includes(text.slice(0, 50))))
  assert.deepEqual(made, [], 'an id became a path')
}

function caseOf(id: string): ReturnType<typeof readCases>[number] {
  const found = readCases().find((given) => given.id === id)
  if (found === undefined) throw new Error(`cases.json has no case ${id}`)
  return found
}
