import { readFileSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { localEngine } from '../../../../src/engines/local/index.ts'
import type { Sandbox } from '../../../../src/sandbox/index.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { allProcesses, commandLineOf, descendantsOf } from '../../../support/processes.ts'
import { NEEDS_ROOT } from './host-place.ts'
import { resultOf, SPEC } from './plain-sandbox.ts'
import { openDirectory, recordsIn } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()

describe.skipIf(skip || NEEDS_ROOT !== undefined)('two sandboxes of one host', () => {
  const stateDir = openDirectory()
  const engine = localEngine({ stateDir })
  const sandboxes: Sandbox[] = []
  beforeAll(async () => {
    sandboxes.push(...(await Promise.all([engine.create(SPEC), engine.create(SPEC)])))
  })
  afterAll(async () => {
    await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()))
    await engine.close()
    rmSync(stateDir, { recursive: true })
  })

  /** bubblewrap's own process of each sandbox. */
  const launchers = (): number[] =>
    allProcesses()
      .filter(({ parent, pid }) => parent === process.pid && /^\S*bwrap\0/.test(commandLineOf(pid)))
      .map(({ pid }) => pid)

  test('run as different users, none of them root', () => {
    const uids = recordsIn(stateDir).map(({ uid }) => uid)
    expect(new Set(uids).size).toBe(2)
    const ours = new Set(descendantsOf(process.pid)) // other test files have sandboxes, too
    const all = allProcesses().filter(({ pid }) => ours.has(pid))
    for (const uid of uids) {
      const own = all.filter((process) => process.uid === uid)
      expect(own.length).toBeGreaterThanOrEqual(3) // bubblewrap, broker, zygote
    }
    const asRoot = all.filter(({ uid }) => uid === 0).map(({ pid }) => commandLineOf(pid))
    expect(asRoot.filter((command) => /sandglass_harness import start/.test(command))).toEqual([])
  })

  test('have no data of the host in the environment and in the arguments', () => {
    const found = launchers()
    expect(found).toHaveLength(2)
    for (const pid of found) {
      const command = commandLineOf(pid)
      expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).toBe('')
      const [, ...args] = command.split('\0')
      expect(args.slice(0, 3)).toEqual(['--args', '3', '--'])
      for (const secret of [stateDir, import.meta.dirname, process.env['HOME'] ?? '/root', '--ro-bind']) {
        expect(command).not.toContain(secret)
      }
    }
  })

  test('show no data of the host in the command line of PID 1 or in the mounts', async () => {
    const [sandbox] = sandboxes
    if (sandbox === undefined) return
    const seen = await resultOf(
      sandbox,
      "emit_result([open('/proc/1/cmdline').read(), open('/proc/self/environ').read()])",
    )
    for (const secret of [stateDir, import.meta.dirname, process.env['HOME'] ?? '/root']) {
      expect(JSON.stringify(seen)).not.toContain(secret)
    }
  })
})
