import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, test } from 'vitest'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { type Container, containers } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import { proxyDaemon } from './daemon-proxy.ts'
import type { HostOrder } from './host.main.ts'

const { skip, image } = await requireDockerEngine()
const RUNS = 8

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Starts a host process; `lines` yields the values that it prints until it ends. */
function startHost(
  order: HostOrder,
  stderr: 'inherit' | 'ignore' = 'inherit',
): { child: ChildProcess; lines: AsyncIterableIterator<Record<string, unknown>> } {
  const main = join(import.meta.dirname, 'host.main.ts')
  const child = spawn(process.execPath, [main, JSON.stringify(order)], { stdio: ['ignore', 'pipe', stderr] })
  children.push(child)
  async function* values(): AsyncGenerator<Record<string, unknown>> {
    for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line) as Record<string, unknown>
  }
  return { child, lines: values() }
}

const containersOf = (child: ChildProcess): Container[] =>
  containers(undefined).filter(({ owner }) => owner === child.pid)

const noneOf = (child: ChildProcess, withinMs: number): Promise<string | undefined> =>
  eventually(() => {
    const left = containersOf(child).length
    return left === 0 ? undefined : `${left} containers are left`
  }, withinMs)

describe.skipIf(skip)('a host process', () => {
  test('is not kept alive by an idle sandbox when its program is done, and the sandbox ends with it', async () => {
    const { child, lines } = startHost({ act: 'idle', engine: { image } })
    const ended = once(child, 'exit')
    const { value } = (await lines.next()) as { value: unknown }
    const from = performance.now()
    expect(value).toMatchObject({ id: expect.stringMatching(/^sandglass-/) as string })
    expect(await ended).toEqual([0, null])
    expect(performance.now() - from).toBeLessThan(5000)
    expect(await noneOf(child, 5000)).toBeUndefined()
  })

  test('stays alive while it awaits a run, and ends after it without a close', async () => {
    const { child, lines } = startHost({ act: 'run', engine: { image } })
    const ended = once(child, 'exit')
    expect(((await lines.next()) as { value: unknown }).value).toMatchObject({ finalData: 1 })
    // 13 would be "unsettled top-level await".
    expect(await ended).toEqual([0, null])
    expect(await noneOf(child, 5000)).toBeUndefined()
  })

  test('stays alive while it awaits a daemon that does not answer, and gets the error', async () => {
    await using proxy = await proxyDaemon()
    proxy.treat = () => ({ after: new Promise(() => {}) })
    const { child } = startHost({ act: 'idle', engine: { image, host: proxy.host, apiTimeoutMs: 1000 } }, 'ignore')
    // An uncaught error, not an early end.
    expect(await once(child, 'exit')).toEqual([1, null])
  })

  test(`that is killed with ${RUNS} runs leaves no container after 5 s`, async () => {
    const { child, lines } = startHost({ act: 'runs', engine: { image }, runs: RUNS })
    for (let forked = 0; forked < RUNS; forked += 1) await lines.next()
    expect(containersOf(child)).toHaveLength(RUNS)
    const from = performance.now()
    child.kill('SIGKILL')
    expect(await noneOf(child, 5000)).toBeUndefined()
    console.log(`kill -9 of a host with ${RUNS} runs: no container after ${Math.round(performance.now() - from)} ms`)
  }, 120_000)
})
