import assert from 'node:assert/strict'
import { sameData } from '../../../../src/orchestrator/index.ts'
import { findScript } from '../../../../src/script/index.ts'
import { scriptedModel } from '../../../../src/testing/index.ts'
import { readCases } from '../case.ts'
import type { Assertion } from '../run-case.ts'
import type { CaseContext } from '../case-state.ts'

/** Assertions for the cases of model answers and prompts. */
export const PROMPTS: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ['PAR-003', keepsTagsInsideCode],
  ['PAR-004', takesWholeTextBetweenTags],
  ['PAR-010', passesCollectedValuesAsData],
  ['PAR-012', comparesDataAsJson],
])

async function keepsTagsInsideCode(): Promise<void> {
  await Promise.resolve()
  assert.deepEqual(findScript(materialOf('PAR-003') as string), { script: "print('</execution-code>')\nimport os" })
}

/** The script is the text from the first opening tag to the last closing tag, with entities unchanged (docs/orchestrating.md). */
async function takesWholeTextBetweenTags({ engine }: CaseContext): Promise<void> {
  const answers = materialOf('PAR-004') as string[]
  const scripts = answers.map((answer) => findScript(answer))
  const whole = ['a</execution-code><execution-code>b', 'a', 'a', 'a<b', 'a &lt; b']
  assert.deepEqual(
    scripts,
    whole.map((script) => ({ script })),
  )
  // The record shows the script that was checked. Two scripts in one answer are a syntax error.
  const sandglass = await engine.open({ poolSize: 1 })
  try {
    const model = scriptedModel(answers[0] ?? '')
    const { record } = await sandglass.solve('Anything', { model, maxRetries: 0 })
    const [attempt] = record.attempts
    assert.deepEqual([attempt?.script, attempt?.status], [whole[0], 'rejected'])
    assert.equal(attempt?.violations[0]?.code, 'syntax_error')
  } finally {
    await sandglass.close()
  }
}

async function passesCollectedValuesAsData({ engine }: CaseContext): Promise<void> {
  const { collected } = materialOf('PAR-010') as { collected: unknown[] }
  const given = collected.filter((value) => value !== Number.POSITIVE_INFINITY)
  assert.equal(given.length, collected.length - 1)
  const model = scriptedModel(
    'emit_intermediate("given", given)',
    'emit_result([collected[0]["data"] == given, collected[0]["data"]])',
  )
  const sandglass = await engine.open({ poolSize: 1 })
  try {
    const options = { model, mode: 'interactive' } as const
    const result = await sandglass.solve('Compare', { ...options, inputs: { given } })
    assert.deepEqual([result.error, result.finalData], [null, [true, given]])
    // JSON has no infinity: the value is rejected with its name and not converted.
    await assert.rejects(sandglass.solve('Compare', { ...options, inputs: { given: collected } }), /inputs\.given/)
  } finally {
    await sandglass.close()
  }
  const [before = '', after = ''] = model.prompts
  const fences = (prompt: string): number => prompt.split('```').length
  assert.equal(fences(after), fences(before))
  assert.ok(!after.includes('\u2028'))
}

async function comparesDataAsJson(): Promise<void> {
  await Promise.resolve()
  const values = materialOf('PAR-012') as unknown[]
  const circular: { self?: unknown } = {}
  circular.self = circular
  const all = [...values, undefined, circular]
  // The first three values are equal objects; every other value equals only itself.
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
