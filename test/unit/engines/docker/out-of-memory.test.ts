import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { EngineEnvironment } from '../../../../src/engines/docker/environment.ts'
import { hasCpuQuota } from '../../../../src/engines/docker/cpu-quota.ts'
import type { Daemon } from '../../../../src/engines/docker/daemon.ts'
import type { ManagedContainer } from '../../../../src/engines/docker/managed-container.ts'
import { watchOutOfMemory } from '../../../../src/engines/docker/out-of-memory.ts'

/** A daemon whose client implements only these calls. */
function daemonWith(docker: object): EngineEnvironment['daemon'] {
  const call: Daemon['call'] = (_what, work) => (typeof work === 'function' ? work(new AbortController().signal) : work)
  return { docker: docker as Daemon['docker'], address: 'test', remote: false, timeoutMs: 1000, call }
}

function containerCalled(id: string, notified: string[]): ManagedContainer {
  const it = { id, closed: new Promise(() => {}), noteOutOfMemory: () => notified.push(id) }
  return it as unknown as ManagedContainer
}

test('listens for memory kills before the first container starts, and notifies the container concerned', async () => {
  const asked: object[] = []
  const events = new PassThrough()
  const getEvents = (options: object): Promise<PassThrough> => {
    asked.push(options)
    return Promise.resolve(events)
  }
  const notified: string[] = []
  const watch = watchOutOfMemory({ daemon: daemonWith({ getEvents }), labels: { mine: '1' }, since: 1_700_000_000 })
  for (const id of ['a', 'b']) watch.add(containerCalled(id, notified))
  expect(asked).toEqual([{ filters: { type: ['container'], event: ['oom'], label: ['mine=1'] }, since: 1_700_000_000 }])
  await new Promise(setImmediate)
  const event = (id: string): string => `${JSON.stringify({ id, status: 'oom', padding: 'x'.repeat(40_000) })}\n`
  // Several events in one chunk that exceeds the longest line; one that is cut; invalid ones.
  events.write(event('a') + event('b') + event('a') + event('c') + event('b').slice(0, 100))
  events.write(`${event('b').slice(100)}nonsense\n${event('a')}`)
  await new Promise(setImmediate)
  expect(notified).toEqual(['a', 'b', 'a', 'b', 'a'])
  expect(watch.isOver).toBe(false)
  events.end()
  await new Promise(setImmediate)
  expect(watch.isOver).toBe(true)
  watch.close()
})

test.each<[string, () => Promise<object>, boolean | undefined]>([
  ['counted periods', () => Promise.resolve({ cpu_stats: { throttling_data: { periods: 3 } } }), true],
  ['none', () => Promise.resolve({ cpu_stats: { throttling_data: { periods: 0 } } }), false],
  ['nothing of it', () => Promise.resolve({}), false],
  ['no answer', () => Promise.reject(new Error('silence')), undefined],
])('a quota of CPU time, where the daemon tells of %s', async (_, stats, expected) => {
  expect(await hasCpuQuota(daemonWith({ getContainer: () => ({ stats }) }), 'x')).toBe(expected)
})
