import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type Policy, type Sandglass } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { shopTools } from './shop-tools.ts'

interface Mistake {
  readonly id: string
  readonly title: string
  readonly mode: 'plan' | 'interactive'
  readonly policy: Policy
  readonly inputs?: Readonly<Record<string, unknown>>
  readonly script: string
}

/** Words that the feedback must contain for a reader to fix a mistake, and the fixed script. */
interface Repair {
  readonly id: string
  readonly needs: readonly string[]
  readonly script: string
}

const mistakes = read<Mistake>('mistakes')
const repairs = read<Repair>('repairs')
const { skip } = await requireLocalEngine()

describe.skipIf(skip)('feedback on the mistakes of test/data/mistakes', () => {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'local', poolSize: 1 })
  }, 60_000)
  afterAll(() => sg.close())

  test('a model that reads only the feedback fixes at least 60 of them at its second attempt (OR-02, OR-12)', async () => {
    expect(repairs.length).toBeGreaterThanOrEqual(60)
    const outcomes: { readonly id: string; readonly attempts: number; readonly problem: string }[] = []
    for (const { id, needs, script } of repairs) {
      const mistake = mistakes.find((one) => one.id === id)
      if (mistake === undefined) throw new Error(`repairs.json: there is no mistake ${id}`)
      let unsaid: readonly string[] = []
      const model = scriptedModel(fence(mistake.script), (prompt) => {
        const feedback = feedbackIn(prompt)
        unsaid = needs.filter((words) => !feedback.includes(words))
        return fence(unsaid.length === 0 ? script : mistake.script)
      })
      const { record, error } = await sg.solve(mistake.title, {
        model,
        tools: shopTools,
        mode: mistake.mode,
        policy: mistake.policy,
        inputs: mistake.inputs ?? {},
        maxRetries: 1,
      })
      const attempts = [...record.attempts, ...record.steps.flatMap((step) => step.attempts)].length
      const problem = unsaid.length > 0 ? `not said: ${unsaid.join(', ')}` : (error ?? '')
      outcomes.push({ id, attempts, problem })
    }
    const repaired = outcomes.filter(({ attempts, problem }) => attempts === 2 && problem === '')
    const others = outcomes.filter((outcome) => !repaired.includes(outcome))
    console.log(
      `${repaired.length} of ${repairs.length} mistakes were fixed at the second attempt` +
        others.map(({ id, attempts, problem }) => `\n  not ${id}: ${attempts} attempts; ${problem}`).join(''),
    )
    expect(repaired.length).toBeGreaterThanOrEqual(60)
  }, 60_000)
})

/** The feedback of a prompt, without the stubs, the task and the script. */
function feedbackIn(prompt: string): string {
  return prompt.slice(prompt.indexOf('What was wrong with it:'))
}

function fence(script: string): string {
  return `\`\`\`python\n${script}\n\`\`\``
}

function read<T>(name: string): readonly T[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, `../../data/mistakes/${name}.json`), 'utf8')) as T[]
}
