import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type Docker from 'dockerode'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { connect, type Daemon } from '../../../../src/engines/docker/daemon.ts'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { listContainers, removeOrphans } from '../../../../src/engines/docker/containers.ts'
import { LABEL, ownerLabels, ownerState } from '../../../../src/engines/docker/owner.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { startOf, statusOf } from '../../../../src/support/index.ts'
import { type PrivateDaemon, requirePrivateDaemon, startDaemon } from '../../../support/docker-daemon.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { docker, wordsOf } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'

const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
const HOUR_MS = 3_600_000

const hosts: ChildProcess[] = []
afterEach(() => {
  for (const host of hosts.splice(0)) host.kill('SIGKILL')
})

/** The daemon with a different clock from this host's; undefined for a daemon that does not report its time. */
function withClock(daemon: Daemon, SystemTime: string | undefined): Daemon {
  const info = (): Promise<object> => Promise.resolve({ ServerVersion: '1', SystemTime })
  return { ...daemon, docker: Object.assign(Object.create(daemon.docker) as typeof daemon.docker, { info }) }
}

/** A daemon that removed a container while starting: it still lists the container, but no longer has it. */
function withPhantom(daemon: Daemon, phantom: Docker.ContainerInfo): Daemon {
  const { docker: client } = daemon
  const listContainers = async (): Promise<Docker.ContainerInfo[]> => [
    ...(await client.listContainers({ all: true })),
    phantom,
  ]
  return { ...daemon, docker: Object.assign(Object.create(client) as typeof client, { listContainers }) }
}

type Labels = Readonly<Record<string, string>>

/** A separate process and the labels of its containers. */
async function host(): Promise<{ labels: Labels; kill(): Promise<void> }> {
  const module = join(import.meta.dirname, '../../../../src/engines/docker/owner.ts')
  const program = `import(${JSON.stringify(module)}).then(({ ownerLabels }) => console.log(JSON.stringify(ownerLabels())))
process.stdin.resume()`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  hosts.push(child)
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return {
    labels: JSON.parse(line) as Labels,
    async kill() {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

/* Uses a private daemon: on a shared one, any engine that starts meanwhile removes the orphans of this test. */
describe.skipIf(noDocker || noDaemon)('a container of a dead host', () => {
  const made: string[] = []
  let daemon: PrivateDaemon
  beforeAll(async () => {
    daemon = await startDaemon()
    await daemon.load(image)
  }, 180_000)
  afterEach(() => {
    for (const id of made.splice(0)) wordsOf(daemon.host, 'rm', '--force', id)
  })
  afterAll(() => daemon?.close())

  /** A container with these labels, as an engine would have made it. */
  const container = (labels: Labels, state: 'created' | 'running' | 'paused' | 'exited'): string => {
    const flags = Object.entries({ [LABEL.sandbox]: 'x', ...labels }).map(([name, value]) => `--label=${name}=${value}`)
    const program = state === 'exited' ? ['true', image] : ['sleep', image, '1000']
    const id = docker(daemon.host, 'create', '--network=none', ...flags, '--entrypoint', ...program).trim()
    made.push(id)
    if (state !== 'created') docker(daemon.host, 'start', id)
    if (state === 'paused') docker(daemon.host, 'pause', id)
    if (state === 'exited') docker(daemon.host, 'wait', id)
    return id
  }
  const existing = (ids: readonly string[]): string[] => {
    const all = docker(daemon.host, 'ps', '--all', '--quiet', '--no-trunc').split('\n')
    return ids.filter((id) => all.includes(id))
  }

  test('is removed in any state at the next start of another host; containers of others stay', async () => {
    const dead = await host()
    await dead.kill()
    const alive = await host()
    const own = ownerLabels()
    const elsewhere = { ...dead.labels, [LABEL.bootId]: '00000000-0000-4000-8000-000000000000' }
    const otherNamespace = { ...dead.labels, [LABEL.owner]: dead.labels[LABEL.owner]?.replace(/^\d+/, '1') ?? '' }
    const left = (['created', 'running', 'paused', 'exited'] as const).map((state) => container(dead.labels, state))
    const kept = [
      container(alive.labels, 'created'),
      container(alive.labels, 'running'),
      container(own, 'created'),
      container(elsewhere, 'running'),
      container(elsewhere, 'created'),
      container(otherNamespace, 'created'),
      container({ [LABEL.owner]: 'nonsense' }, 'created'),
      container({}, 'running'),
    ]
    const engine = dockerEngine({ image, host: daemon.host })
    await (await engine.create(SPEC)).destroy()
    await engine.close()
    expect(existing(left)).toEqual([])
    expect(existing(kept)).toEqual(kept)
  })

  test('of an unknown owner is removed when it was never started and is an hour old', async () => {
    const dead = await host()
    await dead.kill()
    const elsewhere = { ...dead.labels, [LABEL.bootId]: '00000000-0000-4000-8000-000000000000' }
    const left = [container(elsewhere, 'created'), container(elsewhere, 'exited')]
    const alive = await host()
    const kept = [container(elsewhere, 'running'), container(alive.labels, 'created')]
    const connection = await connect({ host: daemon.host })
    const early = new Date(Date.now() + HOUR_MS * 0.9).toISOString()
    for (const time of [early, undefined]) {
      const listed = await listContainers(withClock(connection, time))
      expect(listed.filter(({ id, isOrphan }) => left.includes(id) && isOrphan)).toEqual([])
    }
    const removed = await removeOrphans(withClock(connection, new Date(Date.now() + HOUR_MS * 1.1).toISOString()))
    expect(
      removed
        .map(({ id }) => id)
        .filter((id) => [...left, ...kept].includes(id))
        .toSorted(),
    ).toEqual(left.toSorted())
    expect(existing([...left, ...kept])).toEqual(kept)
  })

  test('is not reported when the daemon lists it but does not have it', async () => {
    const dead = await host()
    await dead.kill()
    const there = container(dead.labels, 'exited')
    const connection = await connect({ host: daemon.host })
    const [listed] = await connection.docker.listContainers({ all: true, filters: { id: [there] } })
    if (listed === undefined) throw new Error(`${there} is not listed`)
    const phantom = { ...listed, Id: 'f'.repeat(64), Names: [], State: 'dead' }
    const containers = await listContainers(withPhantom(connection, phantom))
    expect(containers.map(({ id }) => id)).toEqual([there])
    const stillThere = { ...listed, State: 'dead' }
    expect(await listContainers(withPhantom(connection, stillThere))).toMatchObject([{ id: there }, { id: there }])
    expect(await removeOrphans(withPhantom(connection, phantom))).toMatchObject([{ id: there, state: 'exited' }])
  })
})

test('an owner is alive, dead, or on another machine', async () => {
  const process = await host()
  const { labels } = process
  const [namespace = '', pid = '', start = ''] = labels[LABEL.owner]?.split(':') ?? []
  const withLabel = (name: string, value: string): Labels => ({ ...labels, [name]: value })
  expect(ownerState(labels)).toBe('alive')
  // The same pid, reused by a later process.
  expect(ownerState(withLabel(LABEL.owner, `${namespace}:${pid}:${Number(start) - 1}`))).toBe('dead')
  expect(ownerState(withLabel(LABEL.owner, `1:${pid}:${start}`))).toBe('unknown')
  expect(ownerState(withLabel(LABEL.owner, `${namespace}:${pid}`))).toBe('unknown')
  expect(ownerState(withLabel(LABEL.owner, `${namespace}:x:${start}`))).toBe('unknown')
  expect(ownerState(withLabel(LABEL.bootId, ''))).toBe('unknown')
  expect(ownerState({})).toBe('unknown')
  await process.kill()
  expect(ownerState(labels)).toBe('dead')
})

test('an owner that is a zombie is dead', async () => {
  const program = 'import os, time\npid = os.fork() or os._exit(0)\nprint(pid, flush=True)\ntime.sleep(60)'
  const parent = spawn('/usr/bin/python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string]
  const look = (): string | undefined => (statusOf(Number(line))?.lives === false ? undefined : 'it is no zombie')
  expect(await eventually(look, 5000)).toBeUndefined()
  const namespace = ownerLabels()[LABEL.owner]?.split(':')[0] ?? ''
  const owner = `${namespace}:${line}:${startOf(Number(line)) ?? ''}`
  expect(ownerState({ ...ownerLabels(), [LABEL.owner]: owner })).toBe('dead')
})
