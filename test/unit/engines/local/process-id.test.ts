import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { isIn, killSame } from '../../../../src/engines/local/process-id.ts'
import { startOf } from '../../../../src/support/index.ts'

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

async function sleeper(): Promise<ChildProcess & { pid: number }> {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  children.push(child)
  await once(child, 'spawn')
  return child as ChildProcess & { pid: number }
}

test('a process is killed by its pid only while it is the intended process', async () => {
  const child = await sleeper()
  const start = startOf(child.pid)
  expect(start).toMatch(/^\d+$/)
  expect(killSame(child.pid, '1')).toBe(false)
  expect(killSame(child.pid, undefined)).toBe(false)
  expect(startOf(child.pid)).toBe(start)
  expect(killSame(child.pid, start)).toBe(true)
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  expect([startOf(child.pid), killSame(child.pid, start)]).toEqual([undefined, false])
})

test('a process belongs to a group when the kernel says so', () => {
  const text = '9:memory:/user.slice/sandglass/sg-1\n0::/\n'
  expect(['sg-1', 'sg', 'sg-2'].map((id) => isIn(1, `/sys/fs/cgroup/memory/sandglass/${id}`, text))).toEqual([
    true,
    false,
    false,
  ])
  expect(isIn(process.pid, '/sys/fs/cgroup/memory/sandglass/sg-1')).toBe(false)
})
