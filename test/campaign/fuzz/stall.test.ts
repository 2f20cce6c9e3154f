import { expect, test } from 'vitest'
import { stallCampaign } from '../../../campaigns/fuzz/stall/stall.ts'

/**
 * One entry point for each mechanism behind the promise, with a wide margin on any machine. `npm run fuzz -- --stall` drives
 * all of them.
 */
test.each([
  'answer: tags, strings and fences',
  'result: objects that do not match a zod schema',
  'error: dictionary changed',
  'output: many small frames',
  'a result full of forged gaps',
  'files: pieces of a byte',
  'display: text full of secrets',
  'call: a large array of empty objects',
  'call: a text against a pattern that backtracks',
  'call: tools that do not exist',
  'WebSocket: a call in small pieces',
  'MCP answer: empty blocks',
  'MCP listing: definitions that double',
  'workspace: small pieces of output',
  'check: violations',
  'ready: modules',
  'journal: levels',
  'sqlite: many events',
])('hostile input of growing size stalls, fills and ends no host: %s', async (only) => {
  const verdicts = await stallCampaign({ repetitions: 3, only })
  expect(verdicts.map(({ problems }) => problems)).toEqual([[]])
})
