import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import type { WeakReport } from '../../support/weak-workspace.main.ts'

const { skip } = await requireLocalEngine()
const support = (name: string): string => fileURLToPath(new URL(`../../support/${name}`, import.meta.url))

describe.skipIf(skip)('a workspace on a kernel that cannot keep activities apart', () => {
  test(
    'WS-14: shows none of them secrets, and a killed keeper takes its own tree with it alone',
    { timeout: 60_000 },
    async () => {
      const args = [support('without-landlock.py'), process.execPath, support('weak-workspace.main.ts')]
      const { stdout } = await promisify(execFile)('python3', args)
      expect(JSON.parse(stdout)).toEqual({
        trust: 'shared',
        apart: 'scan',
        opened: [],
        besideIt: ['secrets_not_separate', 'secrets_not_separate'],
        alone: 'completed 44',
        whileModelThinks: ['free', 'free', 'free', 'free'],
        stolen: '',
        killer: ["['Operation not permitted', 'Operation not permitted']\n", 'SIGKILL'],
        neighbour: 'here',
        leftBehind: '',
        rampage: [0, 'on\non\n'],
      } satisfies WeakReport)
    },
  )
})
