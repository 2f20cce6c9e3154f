import { expect, test } from 'vitest'
import { makeProposal } from '../../../src/review/proposal.ts'

const GIVEN = {
  task: null,
  step: null,
  attempt: 1,
  plan: '',
  dependencies: [],
  tools: [],
  sandbox: { engine: 'local', level: 'os-sandbox', python: '3', limitsEnforced: [], network: 'none' },
  problem: null,
} as const

test('large scripts are not compared, so that a proposal holds up nothing', async () => {
  const diffOf = async (last: string, script: string): Promise<string | null> =>
    (await makeProposal({ ...GIVEN, script }, last)).diff
  expect(await diffOf('a\nb', 'a\nc')).toBe('--- last\n+++ this\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n')
  expect(await diffOf('x'.repeat(40_000), 'y'.repeat(40_000))).toBe(null)
  expect(await diffOf('\n'.repeat(1500), 'x\n'.repeat(1500))).toBe(null)
})

test('a reviewer cannot change what the record says of its proposal', async () => {
  const proposal = await makeProposal({ ...GIVEN, script: 'x', tools: [{ name: 'pay', effect: 'write' }] }, null)
  expect(() => Object.assign(proposal, { script: 'y' })).toThrow(TypeError)
  expect(() => Object.assign(proposal.tools[0] ?? {}, { effect: 'read' })).toThrow(TypeError)
  expect(() => Object.assign(proposal.sandbox, { level: 'vm' })).toThrow(TypeError)
})
