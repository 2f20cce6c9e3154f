import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { allProcesses, type HostProcess } from '../../../support/processes.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { requireBubblewrap } from './fixture.ts'

const MAIN = join(import.meta.dirname, '../../../support/engines/pyodide/host.main.ts')

const { skip: noBox } = await requireBubblewrap()
const cache = sharedCache()
afterAll(() => cache[Symbol.dispose]())
const LOOPS = [
  ['a loop of Python', 'while True: pass'],
  ['a loop inside C, which no clock of Python interrupts', 'sum(range(10**15))'],
] as const
const cases = (['open', 'box'] as const).flatMap((box) => LOOPS.map(([what, loop]) => ({ box, what, loop })))

test.for(cases)('a host that is killed leaves no process behind: $what ($box)', async ({ box, loop }, { skip }) => {
  if (box === 'box' && noBox) skip('there is no box here, for the reason that is printed above')
  const args = ['--no-warnings', MAIN, cache.path, `emit_log("up")\n${loop}`, box]
  const host = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(host.stdout, 'data')
  const children = below(host.pid ?? 0)
  expect(children.length).toBeGreaterThan(0)
  host.kill('SIGKILL')
  await once(host, 'exit')
  const left = await eventually(() => {
    const living = new Set(allProcesses().map(({ pid }) => pid))
    const those = children.filter(({ pid }) => living.has(pid))
    return those.length === 0 ? undefined : `alive: ${those.map(({ pid }) => pid).join(', ')}`
  }, 5000)
  expect(left).toBeUndefined()
})

/** The descendants of a process. */
function below(pid: number): HostProcess[] {
  const all = allProcesses()
  const found = all.filter(({ parent }) => parent === pid)
  for (const one of found) found.push(...all.filter(({ parent }) => parent === one.pid))
  return found
}
