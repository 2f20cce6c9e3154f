import { awaitReady, ChunkQueue } from '../../../src/sandbox/index.ts'
import { FakeWorkspace, type HostSaid } from '../../../test/support/fake-workspace.ts'
import { type Entrance, KiB, keys, many, MiB } from './entrance.ts'
import { hostOf, line } from './peer.ts'

const nothing = (): Promise<void> => Promise.resolve()

/** First frames of a sandbox. Their length is bounded by 1 MiB. */
const READY: readonly { name: string; unit: string; sizes: readonly number[]; loaded: (size: number) => string }[] = [
  { name: 'modules', unit: 'modules', sizes: [1000, 10_000, 200_000], loaded: (n) => many(n, '"a"') },
  { name: 'keys in place of modules', unit: 'keys', sizes: [1000, 10_000, 90_000], loaded: keys },
  {
    name: 'a long name',
    unit: 'characters',
    sizes: [10_000, 100_000, 1_000_000],
    loaded: (n) => `["${'x'.repeat(n)}"]`,
  },
]

const READY_ENTRANCES: readonly Entrance[] = READY.map(({ loaded, ...rest }) => ({
  ...rest,
  name: `ready: ${rest.name}`,
  from: 'a script',
  limitBytes: MiB,
  prepare: (size) => {
    const lists = `{"loaded":${loaded(size)},"failed":[]}`
    const bytes = Buffer.from(
      `{"type":"ready","protocol":2,"python":"3.12.0","tools":${lists},"preload":{"loaded":[],"failed":[],"deferred":[]},"checks":{}}\n`,
    )
    return Promise.resolve({
      act: () => {
        const queue = new ChunkQueue()
        queue.put(bytes)
        queue.end()
        const channel = { receive: () => queue.take(), send: nothing, close: () => undefined }
        return awaitReady(channel, { timeoutMs: 5000 }).catch((error: unknown) => error)
      },
      [Symbol.asyncDispose]: nothing,
    })
  },
}))

const VIOLATION = '{"code":"unknown_name","line":1,"column":0,"message":"m","hint":null}'
const CHECKS: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  violations: (size: number) => string
}[] = [
  { name: 'violations', unit: 'violations', sizes: [100, 1000, 10_000], violations: (n) => many(n, VIOLATION) },
  {
    name: 'a long message',
    unit: 'characters',
    sizes: [10_000, 100_000, 900_000],
    violations: (n) => `[${VIOLATION.replace('"m"', `"${'x '.repeat(n / 2)}"`)}]`,
  },
  { name: 'keys in place of violations', unit: 'keys', sizes: [1000, 10_000, 80_000], violations: keys },
]

const CHECK_ENTRANCES: readonly Entrance[] = CHECKS.map(({ violations, ...rest }) => ({
  ...rest,
  name: `check: ${rest.name}`,
  from: 'a script',
  limitBytes: MiB,
  prepare: async (size) => {
    const host = await hostOf([], [line('check_result', `"violations":${violations(size)}`)])
    return {
      act: () => host.check('emit_result(1)').catch((error: unknown) => error),
      [Symbol.asyncDispose]: () => host.close(),
    }
  },
}))

/** What a sandbox of a workspace says. */
const WORKSPACES: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  answer: (said: HostSaid, fake: FakeWorkspace, size: number) => void
}[] = [
  {
    name: 'output of no activity',
    unit: 'frames',
    sizes: [1000, 10_000, 50_000],
    answer: ({ type, execution_id: id }, fake, size) => {
      if (type !== 'start') return
      fake.frames({ type: 'started', execution_id: id, pid: 7 })
      for (let at = 0; at < size; at += 1) fake.output('nobody', 'stdout', 'x')
      fake.done(id)
    },
  },
  {
    name: 'lines that are no frames',
    unit: 'lines',
    sizes: [1000, 10_000, 100_000],
    answer: ({ type, execution_id: id }, fake, size) => {
      if (type !== 'start') return
      fake.frames({ type: 'started', execution_id: id, pid: 7 })
      fake.bytes('{"a":[[[[\n'.repeat(size))
      fake.done(id)
    },
  },
  {
    name: 'small pieces of output',
    unit: 'pieces',
    sizes: [1000, 10_000, 50_000],
    answer: ({ type, execution_id: id }, fake, size) => {
      if (type !== 'start') return
      fake.frames({ type: 'started', execution_id: id, pid: 7 })
      for (let at = 0; at < size; at += 1) fake.output(id, 'stdout', 'x')
      fake.done(id)
    },
  },
  {
    name: 'an end full of keys',
    unit: 'keys',
    sizes: [1000, 10_000, 80_000],
    answer: ({ type, execution_id: id }, fake, size) => {
      if (type !== 'start') return
      fake.frames({ type: 'started', execution_id: id, pid: 7 })
      fake.bytes(`{"type":"activity_done","execution_id":${JSON.stringify(id)},"result":${keys(size)}}\n`)
      fake.done(id)
    },
  },
]

const WORKSPACE_ENTRANCES: readonly Entrance[] = WORKSPACES.map(({ answer, ...rest }) => ({
  ...rest,
  name: `workspace: ${rest.name}`,
  from: 'a script',
  limitBytes: 1024 * KiB,
  prepare: (size) =>
    Promise.resolve({
      act: async () => {
        const fake = new FakeWorkspace()
        fake.answer = (said, peer) => answer(said, peer, size)
        const ended = await fake.ws.exec('work').catch((error: unknown) => error)
        await fake.ws.close()
        return ended
      },
      [Symbol.asyncDispose]: nothing,
    }),
}))

/** What a sandbox says outside of runs. */
export const SANDBOX_ENTRANCES: readonly Entrance[] = [...READY_ENTRANCES, ...CHECK_ENTRANCES, ...WORKSPACE_ENTRANCES]
