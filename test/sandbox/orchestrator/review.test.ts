import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createSandglass, defineTool, memoryStore } from '../../../src/index.ts'
import type { Decision, Proposal, Reviewer } from '../../../src/review.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { onLocal } from '../tools/on-engine.ts'

const paid: number[] = []
const pay = defineTool({
  name: 'pay',
  description: 'Pays an amount.',
  input: z.object({ amount: z.number() }),
  output: z.number(),
  execute: ({ amount }) => {
    paid.push(amount)
    return amount
  },
})
const balance = defineTool({
  name: 'balance',
  description: 'What is left.',
  effect: 'read',
  input: z.object({}),
  output: z.number(),
  execute: () => 100,
})
const tools = [pay, balance]
const script = (amount: number): string => `emit_result(pay(amount=${amount}))`

/** A reviewer with a list of answers, the last one for ever. */
function answers(...decisions: (Decision | ((proposal: Proposal) => Decision))[]): {
  review: Reviewer
  seen: Proposal[]
} {
  const seen: Proposal[] = []
  return {
    seen,
    review: (proposal) => {
      seen.push(proposal)
      const decision = decisions[Math.min(seen.length, decisions.length) - 1]
      if (decision === undefined) throw new Error('no answer')
      return typeof decision === 'function' ? decision(proposal) : decision
    },
  }
}

await onLocal((at) => {
  describe('a reviewer of solve', () => {
    test('sees the script byte for byte, with what it may do, and nothing of it runs before the answer', async () => {
      paid.length = 0
      const model = scriptedModel(`I pay what is left.\n\`\`\`python\n${script(7)}\n\`\`\``)
      const { review, seen } = answers((proposal) => {
        expect(paid).toEqual([])
        expect(proposal.sha256).toBe(createHash('sha256').update(proposal.script).digest('hex'))
        return { decision: 'accept', by: 'ann' }
      })
      const result = await at.sg.solve('Pay', { model, tools, review })
      expect([result.finalData, paid]).toEqual([7, [7]])
      expect(seen).toMatchObject([
        {
          task: 'Pay',
          step: null,
          attempt: 1,
          plan: 'I pay what is left.',
          script: script(7),
          dependencies: [],
          tools: [{ name: 'pay', effect: 'write' }],
          sandbox: { engine: at.engine, network: 'none' },
          diff: null,
          problem: null,
        },
      ])
      expect(result.record.attempts[0]?.reviews).toMatchObject([
        { proposalId: seen[0]?.id, sha256: seen[0]?.sha256, decision: { decision: 'accept', by: 'ann', script: null } },
      ])
    })

    test('what runs is what was shown, to the last blank', async () => {
      const text = ' \ta  \n\n\u00A0\u200B\u202Eé\u0301  \n  '
      const { review, seen } = answers({ decision: 'accept' })
      const model = scriptedModel(`\`\`\`python\nemit_result("""${text}""")\n\`\`\``)
      const { finalData } = await at.sg.solve('Say it', { model, review })
      expect([finalData, seen[0]?.script.split('"""')[1]]).toEqual([text, text])
      const raw = `emit_result("""${text}""")\t\n`
      expect(await at.sg.asTool({ review }).execute({ script: raw })).toMatchObject({ result: text })
      expect(seen[1]?.script).toBe(raw)
    })

    test('who refuses gives the model the reason, and gets the difference of the next script', async () => {
      paid.length = 0
      const model = scriptedModel(script(500), script(5))
      const { review, seen } = answers(
        { decision: 'reject', text: '500 is too much.\nAt most 10.', by: 'ann' },
        { decision: 'accept' },
      )
      const { finalData, record } = await at.sg.solve('Pay', { model, tools, review })
      expect([finalData, paid]).toEqual([5, [5]])
      expect(model.prompts[1]).toContain('the reviewer did not accept the script: 500 is too much.\n| At most 10.')
      expect(seen[1]?.diff).toBe(`--- last\n+++ this\n@@ -1,1 +1,1 @@\n-${script(500)}\n+${script(5)}\n`)
      expect(record.attempts.map(({ status }) => status)).toEqual(['not-accepted', 'completed'])
    })

    test('who never accepts lets nothing run, however it is called', async () => {
      paid.length = 0
      for (const decision of ['respond', 'edit', 'reject'] as const) {
        const { review, seen } = answers({ decision, text: 'no' })
        const options = { model: scriptedModel(script(1)), tools, review, maxRetries: 1 }
        const { record } = await at.sg.solve('Pay', options)
        expect([record.status, seen.length, record.totalToolCalls]).toEqual(['retries-spent', 2, 0])
      }
      expect(paid).toEqual([])
    })

    test('who replaces the script runs that, once it has no mistake, and the record names it as theirs', async () => {
      paid.length = 0
      const { review, seen } = answers(
        { decision: 'accept', script: 'emit_result(pay(amuont=3))', by: 'ann' },
        { decision: 'accept', script: 'emit_result(', by: 'ann' },
        { decision: 'accept', script: script(3), by: 'ann' },
      )
      const { finalData, record } = await at.sg.solve('Pay', { model: scriptedModel(script(9)), tools, review })
      expect([finalData, paid]).toEqual([3, [3]])
      expect(seen.map(({ script: proposed, problem }) => [proposed, problem?.slice(0, 55) ?? null])).toEqual([
        [script(9), null],
        [script(9), 'the script was rejected before it ran: line 1: pay() ha'],
        [script(9), "the script was rejected before it ran: line 1: '(' was "],
      ])
      const [attempt] = record.attempts
      expect([attempt?.script, attempt?.reviews.at(-1)?.decision?.script]).toEqual([script(3), script(3)])
    })

    test('who gives up on a script of their own lets the one of the model run, and the record says so', async () => {
      const { review } = answers({ decision: 'accept', script: 'emit_result(' }, { decision: 'accept' })
      const { finalData, record } = await at.sg.solve('Pay', { model: scriptedModel(script(8)), tools, review })
      expect([finalData, record.attempts[0]?.script]).toEqual([8, script(8)])
    })

    test('and the journal show no secret: not in the plan, the script, its digest, the problem or the name', async () => {
      const secret = 'hunter-2-hunter'
      const journal = memoryStore()
      const own = { decision: 'accept', by: secret } as const
      const { review } = answers({ ...own, script: `${secret.replaceAll('-', '_')}\n"${secret}" + 1 +` }, own)
      const model = scriptedModel(`I use ${secret}.\n\`\`\`python\nemit_result(len("${secret}"))\n\`\`\``)
      const { record, finalData } = await at.sg.solve('Use it', { model, review, journal, hide: { KEY: secret } })
      expect([finalData, record.attempts[0]?.reviews[0]?.sha256]).toEqual([secret.length, null])
      expect(JSON.stringify([record, await journal.read(record.runId)])).not.toContain(secret)
    })

    test('who takes long holds no sandbox, in no step', async () => {
      await using small = await createSandglass({ engine: at.engine, poolSize: 1, maxOverflow: 0 })
      const beside: unknown[] = []
      const review: Reviewer = async () => {
        beside.push((await small.run('emit_result(1)', { checkoutTimeoutMs: 5000 })).finalData)
        return { decision: 'accept' }
      }
      const model = scriptedModel('emit_intermediate("a", 1)', 'emit_result(2)')
      const { finalData } = await small.solve('Step', { model, review, mode: 'interactive' })
      expect([finalData, beside]).toEqual([2, [1, 1]])
    })

    test('sees all tools if the script may find others than it names', async () => {
      const { review, seen } = answers({ decision: 'accept' })
      const model = scriptedModel(`emit_result(globals()["p" + "ay"](amount=1))`)
      await at.sg.solve('Pay', { model, tools, review, policy: 'off', maxRetries: 0 })
      expect(seen[0]?.tools.map(({ name }) => name)).toEqual(['pay', 'balance'])
    })

    test('is asked in each step of INTERACTIVE mode, and not about a script that the check rejects', async () => {
      const model = scriptedModel(
        'emit_resutl(1)',
        'emit_intermediate("left", balance())',
        'emit_result(collected[0]["data"])',
      )
      const { review, seen } = answers({ decision: 'accept' })
      const { finalData } = await at.sg.solve('Ask', { model, tools, review, mode: 'interactive' })
      expect(finalData).toBe(100)
      expect(seen.map(({ step, attempt, tools: called }) => [step, attempt, called])).toEqual([
        [1, 2, [{ name: 'balance', effect: 'read' }]],
        [2, 1, []],
      ])
    })

    test('who fails, or answers what is no decision, ends the task, and the script does not run', async () => {
      paid.length = 0
      for (const [answer, problem] of [
        [{ decision: 'yes' }, 'decision: "yes" is not one of accept, respond, edit, reject'],
        [{ decision: 'reject' }, 'text: reject needs a message to the model'],
        [{ decision: 'accept', script: ' ' }, 'script: " " is not Python'],
        [{ decision: 'accept', scirpt: 'x' }, 'unknown option "scirpt"'],
        [
          { decision: 'respond', text: 'a', script: 'b' },
          'script: the decision respond must not have one; only accept may',
        ],
        [{ decision: 'accept', by: 7 }, 'by: 7 is not a text'],
        [true, 'true is not a decision'],
        [undefined, 'undefined is not a decision'],
      ] as const) {
        const review = (() => answer) as never
        const { record, error } = await at.sg.solve('Pay', { model: scriptedModel(script(1)), tools, review })
        expect([record.status, error]).toEqual(['infrastructure', expect.stringContaining(problem)])
      }
      const review: Reviewer = () => Promise.reject(new Error('the form is down'))
      const { error } = await at.sg.solve('Pay', { model: scriptedModel(script(1)), tools, review })
      expect(error).toBe('the review failed: the form is down')
      expect(paid).toEqual([])
    })

    test('who never answers is told when the task is cancelled; the proposal stays on record', async () => {
      const journal = memoryStore()
      const controller = new AbortController()
      let told: unknown
      const review: Reviewer = (_, { signal }) =>
        new Promise(() => {
          signal.addEventListener('abort', () => {
            told = signal.reason
          })
          controller.abort()
        })
      const options = { model: scriptedModel(script(1)), tools, review, journal, signal: controller.signal }
      const { record } = await at.sg.solve('Pay', options)
      expect([record.status, record.attempts[0]?.reviews[0]?.decision]).toEqual(['cancelled', null])
      expect(told).toBeInstanceOf(Error)
    })

    test('a wrong option is told before the model is asked', async () => {
      const model = scriptedModel(script(1))
      await expect(at.sg.solve('Pay', { model, review: 'always' as never })).rejects.toThrow(
        'review: "always" is not a function',
      )
      expect(model.prompts).toEqual([])
    })
  })

  describe('the same reviewer of asTool', () => {
    test('accepts, replaces and refuses; the answer says why', async () => {
      paid.length = 0
      const { review, seen } = answers(
        { decision: 'accept' },
        { decision: 'accept', script: script(2) },
        { decision: 'reject', text: 'enough' },
      )
      const tool = at.sg.asTool({ tools, review })
      const results = []
      for (const amount of [1, 50, 60]) results.push(await tool.execute({ script: script(amount) }))
      expect(paid).toEqual([1, 2])
      expect(results).toMatchObject([
        { ok: true, result: 1 },
        { ok: true, result: 2 },
        { ok: false, status: 'rejected', error: 'the reviewer did not accept the script: enough' },
      ])
      expect(seen.map(({ task, attempt, diff }) => [task, attempt, diff !== null])).toEqual([
        [null, 1, false],
        [null, 2, true],
        [null, 3, true],
      ])
    })

    test('is not asked about a script with mistakes; its failure ends the call', async () => {
      const { review, seen } = answers()
      const tool = at.sg.asTool({ tools, review })
      expect(await tool.execute({ script: 'pay(amuont=1)' })).toMatchObject({ ok: false, status: 'rejected' })
      expect(seen).toEqual([])
      await expect(tool.execute({ script: script(1) })).rejects.toThrow('no answer')
      expect(() => at.sg.asTool({ review: 1 as never })).toThrow('review: 1 is not a function')
    })

    test('a script of the reviewer that names a package which it may not have is asked about again', async () => {
      const wished = '# /// script\n# dependencies = ["nope"]\n# ///\nemit_result(1)'
      const { review, seen } = answers({ decision: 'accept', script: wished }, { decision: 'reject', text: 'no' })
      const answer = await at.sg.asTool({ review }).execute({ script: 'emit_result(2)' })
      expect(answer).toMatchObject({ ok: false, error: 'the reviewer did not accept the script: no' })
      expect(seen.map(({ problem }) => problem?.includes('nope') ?? null)).toEqual([null, true])
    })

    test('a workspace stays open while a person decides, however soon it would close', async () => {
      await using workspace = await at.sg.workspace({ idleTimeoutSec: 0.1 })
      const review: Reviewer = async () => {
        const until = performance.now() + 300
        while (performance.now() < until) await new Promise(setImmediate)
        return { decision: 'accept' }
      }
      expect(await at.sg.asTool({ review, workspace }).execute({ script: 'emit_result(3)' })).toMatchObject({
        result: 3,
      })
    })

    test('a call that is cancelled while it waits settles', async () => {
      const controller = new AbortController()
      const review: Reviewer = () => {
        controller.abort()
        return new Promise(() => {})
      }
      const tool = at.sg.asTool({ review })
      await expect(tool.execute({ script: 'x = 1' }, { abortSignal: controller.signal })).rejects.toThrow(/abort/i)
    })
  })
})
