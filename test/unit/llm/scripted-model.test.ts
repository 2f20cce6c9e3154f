import { expect, test } from 'vitest'
import { callerOf } from '../../../src/llm/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'

const context = { signal: new AbortController().signal }

test('a scripted model is a function that returns its answers in order and keeps the prompts', async () => {
  const model = scriptedModel('one', async (prompt) => `to ${prompt}`)
  const caller = callerOf(model)
  expect([await caller('a', context), await caller('b', context), await caller('c', context)]).toEqual([
    'one',
    'to b',
    'to c',
  ])
  expect(model.prompts).toEqual(['a', 'b', 'c'])
})
