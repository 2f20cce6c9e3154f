import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type Policy, type Sandglass } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { shopTools } from './shop-tools.ts'

interface Mistake {
  readonly id: string
  readonly title: string
  readonly mode: 'plan' | 'interactive'
  readonly policy: Policy
  readonly inputs?: Readonly<Record<string, unknown>>
  readonly script: string
}

/** What a reader needs to be told to mend a mistake, and what it then writes. */
interface Repair {
  readonly id: string
  readonly needs: readonly string[]
  readonly script: string
}

const mistakes = read<Mistake>('mistakes')
const repairs = read<Repair>('repairs')
const { skip } = await requireLocalEngine()

describe.skipIf(skip)('feedback on the mistakes of test/mistakes', () => {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'local', poolSize: 1 })
  }, 60_000)
  afterAll(() => sg.close())

  test('a model that reads nothing else mends at least 60 of them at its second attempt (OR-02, OR-12)', async () => {
    expect(repairs.length).toBeGreaterThanOrEqual(60)
    const outcomes: { readonly id: string; readonly attempts: number; readonly trouble: string }[] = []
    for (const { id, needs, script } of repairs) {
      const mistake = mistakes.find((one) => one.id === id)
      if (mistake === undefined) throw new Error(`repairs.json: there is no mistake ${id}`)
      let unsaid: readonly string[] = []
      const model = scriptedModel(fenced(mistake.script), (prompt) => {
        const feedback = feedbackIn(prompt)
        unsaid = needs.filter((words) => !feedback.includes(words))
        return fenced(unsaid.length === 0 ? script : mistake.script)
      })
      const { record, error } = await sg.solve(mistake.title, {
        model: model.call,
        tools: shopTools,
        mode: mistake.mode,
        policy: mistake.policy,
        inputs: mistake.inputs ?? {},
        maxRetries: 1,
      })
      const attempts = [...record.attempts, ...record.steps.flatMap((step) => step.attempts)].length
      const trouble = unsaid.length > 0 ? `not said: ${unsaid.join(', ')}` : (error ?? '')
      outcomes.push({ id, attempts, trouble })
    }
    const mended = outcomes.filter(({ attempts, trouble }) => attempts === 2 && trouble === '')
    const others = outcomes.filter((outcome) => !mended.includes(outcome))
    console.log(
      `${mended.length} of ${repairs.length} mistakes were mended at the second attempt` +
        others.map(({ id, attempts, trouble }) => `\n  not ${id}: ${attempts} attempts; ${trouble}`).join(''),
    )
    expect(mended.length).toBeGreaterThanOrEqual(60)
  }, 60_000)
})

/** What the model is told was wrong: nothing of the stubs, the task or its own script. */
function feedbackIn(prompt: string): string {
  return prompt.slice(prompt.indexOf('What was wrong with it:'))
}

function fenced(script: string): string {
  return `\`\`\`python\n${script}\n\`\`\``
}

function read<T>(name: string): readonly T[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, `../mistakes/${name}.json`), 'utf8')) as T[]
}
