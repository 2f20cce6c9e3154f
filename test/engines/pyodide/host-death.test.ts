import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { allProcesses } from '../../support/processes.ts'
import { place } from './bed.ts'

const MAIN = join(import.meta.dirname, 'host.main.ts')

test.each([
  ['a loop of Python', 'while True: pass'],
  ['a loop inside C, which no clock of Python interrupts', 'sum(range(10**15))'],
])('a host that is killed leaves no process behind: %s', async (_what, loop) => {
  using cache = place()
  const host = spawn(process.execPath, ['--no-warnings', MAIN, cache.path, `emit_log("up")\n${loop}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(host.stdout, 'data')
  const children = allProcesses().filter(({ parent }) => parent === host.pid)
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
