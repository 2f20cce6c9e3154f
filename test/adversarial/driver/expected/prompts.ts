import assert from 'node:assert/strict'
import { sameData } from '../../../../src/orchestrator/index.ts'
import { scriptIn } from '../../../../src/script/index.ts'
import { scriptedModel } from '../../../../src/testing/index.ts'
import { readCases } from '../case.ts'
import type { Assertion } from '../run-case.ts'
import type { Ground } from '../stage.ts'

/** The cases of answers and prompts. */
export const PROMPTS: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ['PAR-003', aTagInTheCodeCutsNothing],
  ['PAR-004', whatIsTakenFromTagsIsWhole],
  ['PAR-010', collectedIsData],
  ['PAR-012', equalityIsThatOfJson],
])

async function aTagInTheCodeCutsNothing(): Promise<void> {
  await Promise.resolve()
  assert.deepEqual(scriptIn(materialOf('PAR-003') as string), { script: "print('</execution-code>')\nimport os" })
}

/** From the first opening tag to the last closing one, entities as they are: docs/orchestrating.md. */
async function whatIsTakenFromTagsIsWhole({ engine }: Ground): Promise<void> {
  const answers = materialOf('PAR-004') as string[]
  const scripts = answers.map((answer) => scriptIn(answer))
  const whole = ['a</execution-code><execution-code>b', 'a', 'a', 'a<b', 'a &lt; b']
  assert.deepEqual(
    scripts,
    whole.map((script) => ({ script })),
  )
  // What the record shows is what was checked; two scripts in one answer are no Python, and are told so.
  const sandglass = await engine.open({ poolSize: 1 })
  try {
    const model = scriptedModel(answers[0] ?? '')
    const { record } = await sandglass.solve('Anything', { model: model.call, maxRetries: 0 })
    const [attempt] = record.attempts
    assert.deepEqual([attempt?.script, attempt?.status], [whole[0], 'rejected'])
    assert.equal(attempt?.violations[0]?.code, 'syntax_error')
  } finally {
    await sandglass.close()
  }
}

async function collectedIsData({ engine }: Ground): Promise<void> {
  const { collected } = materialOf('PAR-010') as { collected: unknown[] }
  const given = collected.filter((value) => value !== Number.POSITIVE_INFINITY)
  assert.equal(given.length, collected.length - 1)
  const model = scriptedModel(
    'emit_intermediate("given", given)',
    'emit_result([collected[0]["data"] == given, collected[0]["data"]])',
  )
  const sandglass = await engine.open({ poolSize: 1 })
  try {
    const options = { model: model.call, mode: 'interactive' } as const
    const result = await sandglass.solve('Compare', { ...options, inputs: { given } })
    assert.deepEqual([result.error, result.finalData], [null, [true, given]])
    // JSON has no infinity: it is refused by name, not turned into something else.
    await assert.rejects(sandglass.solve('Compare', { ...options, inputs: { given: collected } }), /inputs\.given/)
  } finally {
    await sandglass.close()
  }
  const [before = '', after = ''] = model.prompts
  const fences = (prompt: string): number => prompt.split('```').length
  assert.equal(fences(after), fences(before))
  assert.ok(!after.includes('\u2028'))
}

async function equalityIsThatOfJson(): Promise<void> {
  await Promise.resolve()
  const values = materialOf('PAR-012') as unknown[]
  const circular: { self?: unknown } = {}
  circular.self = circular
  const all = [...values, undefined, circular]
  // The first three are one object; every other value equals itself alone.
  const classes = [0, 0, 0, 3, 4, 5, 6, 7, 8, 9]
  for (const [i, a] of all.entries()) {
    for (const [j, b] of all.entries()) assert.equal(sameData(a, b), classes[i] === classes[j], `${i} and ${j}`)
  }
}

function materialOf(id: string): unknown {
  const given = readCases().find((one) => one.id === id)
  assert.ok(given !== undefined, id)
  return given.script_or_input
}
