import type { Ending, Sandbox, SandboxEngine, SandboxSpec } from '../../../src/sandbox/index.ts'
import { DEFAULT_LIMITS, sandboxLimits } from '../../../src/sandbox/index.ts'

/** A spec for tests; `pids` tells specs apart. */
export function fakeSpec(pids: number = DEFAULT_LIMITS.pids): SandboxSpec {
  return { limits: { ...sandboxLimits(DEFAULT_LIMITS), pids } }
}

/** A creation that the test must complete. */
export interface PendingCreation {
  readonly spec: SandboxSpec
  readonly signal: AbortSignal | undefined
  /** Reports why it waits. */
  wait(why: string): void
  succeed(): FakeSandbox
  fail(error: unknown): void
}

/** A sandbox in memory. */
export interface FakeSandbox extends Sandbox {
  /** The number of calls of `destroy`. */
  destroyCalls: number
  /** Completes a pending `destroy`. */
  ended: boolean
  /** Ends the sandbox as if by itself. */
  crash(): void
}

/** An engine in memory: by default creations succeed at once; with `manual` the test decides. */
export interface FakeEngine extends SandboxEngine {
  manual: boolean
  /** When set, creations that are not manual fail with it. */
  failure: unknown
  /** Called in place of an immediate end of `destroy`. */
  destroying: ((sandbox: FakeSandbox) => Promise<void>) | null
  /** The checks of later sandboxes. */
  checks: Sandbox['ready']['checks']
  /** When set, the promise that later sandboxes await between two runs. */
  recovering: ((sandbox: FakeSandbox) => Promise<void>) | null
  readonly pending: PendingCreation[]
  /** Lets all pending creations succeed. */
  succeedAll(): FakeSandbox[]
  /** All sandboxes that were made, in order. */
  readonly made: FakeSandbox[]
  /** The running sandboxes. */
  alive(): FakeSandbox[]
  /** The number of calls of `create`. */
  readonly calls: number
}

/** Makes a fake engine whose sandboxes are called s1, s2 … in order of creation. */
export function fakeEngine(): FakeEngine {
  const pending: PendingCreation[] = []
  const made: FakeSandbox[] = []
  let calls = 0
  const engine: FakeEngine = {
    name: 'fake',
    manual: false,
    failure: undefined,
    destroying: null,
    checks: {},
    recovering: null,
    pending,
    succeedAll: () => Array.from(pending.slice(), (creation) => creation.succeed()),
    made,
    alive: () => made.filter((sandbox) => !sandbox.ended),
    get calls() {
      return calls
    },
    report: () => Promise.reject(new Error('not part of these tests')),
    close: () => Promise.resolve(),
    create(spec, options) {
      calls += 1
      const { promise, resolve, reject } = Promise.withResolvers<Sandbox>()
      const creation: PendingCreation = {
        spec,
        signal: options?.signal,
        wait: (why) => options?.onWaiting?.(why),
        succeed() {
          remove(pending, creation)
          const sandbox = fakeSandbox(`s${made.length + 1}`, spec, engine)
          made.push(sandbox)
          resolve(sandbox)
          return sandbox
        },
        fail(error) {
          remove(pending, creation)
          reject(error)
        },
      }
      pending.push(creation)
      if (!engine.manual) {
        if (engine.failure === undefined) creation.succeed()
        else creation.fail(engine.failure)
      }
      return promise
    },
  }
  return engine
}

function fakeSandbox(id: string, spec: SandboxSpec, engine: FakeEngine): FakeSandbox {
  const { promise: closed, resolve } = Promise.withResolvers<Ending>()
  const end = (ending: Ending): void => {
    sandbox.ended = true
    resolve(ending)
  }
  const sandbox: FakeSandbox = {
    id,
    info: {
      engine: 'fake',
      level: 'none',
      python: '3.11.2',
      network: 'none',
      limitsEnforced: [],
      limits: spec.limits,
    },
    channel: {
      receive: () => Promise.resolve(null),
      send: () => Promise.resolve(),
      close: () => {},
    },
    ready: {
      type: 'ready',
      protocol: 2,
      python: '3.11.2',
      tools: { loaded: [], failed: [] },
      preload: { loaded: [], failed: [], deferred: [] },
      checks: engine.checks,
    },
    closed,
    memoryKills: () => null,
    ...(engine.recovering === null ? {} : { recovered: () => engine.recovering?.(sandbox) ?? Promise.resolve() }),
    destroyCalls: 0,
    ended: false,
    crash: () => end({ cause: 'signal', exitCode: null, signal: 'SIGKILL', by: 'kernel' }),
    async destroy() {
      sandbox.destroyCalls += 1
      await engine.destroying?.(sandbox)
      end({ cause: 'destroyed', exitCode: null, signal: null, by: 'host' })
    },
    [Symbol.asyncDispose]: () => sandbox.destroy(),
  }
  return sandbox
}

function remove<T>(list: T[], item: T): void {
  const index = list.indexOf(item)
  if (index >= 0) list.splice(index, 1)
}
