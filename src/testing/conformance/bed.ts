import assert from 'node:assert/strict'
import {
  resolveLimits,
  type ResourceLimits,
  type Sandbox,
  type SandboxEngine,
  sandboxLimits,
  type SandboxReport,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import { HarnessPeer } from './peer.ts'

/** What a test runner calls; its context may have a `skip`, as those of vitest and node:test do. */
export type TestBody = (context: unknown) => Promise<void>

/** Which engine is tested, and by which runner. */
export interface ConformanceOptions {
  readonly name: string
  /** Called once. */
  readonly makeEngine: () => SandboxEngine | Promise<SandboxEngine>
  /** `describe` of the caller's test runner. */
  readonly describe: (name: string, body: () => void) => unknown
  /** `it` or `test` of the caller's test runner. */
  readonly it: (name: string, body: TestBody) => unknown
  /** What every sandbox of the tests is to have. */
  readonly spec?: Partial<SandboxSpec>
  /** Says why nothing can be tested on this machine, or undefined: every test is then skipped with that reason. */
  readonly unavailable?: () => Promise<string | undefined>
  /** What is left on the machine once every sandbox is destroyed; a failure unless it is empty. */
  readonly leftovers?: () => Promise<readonly unknown[]>
}

/** What the tests of a part are written with. */
export interface Bed {
  /** Declares a test. `needs` says what is missing, or undefined. */
  test(name: string, body: () => Promise<void>, needs?: (report: SandboxReport) => string | undefined): void
  /** Runs `use` with a fresh sandbox and its peer; both are gone afterwards, and no frame was outside of the protocol. */
  with(spec: Wish, use: (peer: HarnessPeer, sandbox: Sandbox) => Promise<void>): Promise<void>
  create(spec?: Wish, signal?: AbortSignal): Promise<Sandbox>
  report(): Promise<SandboxReport>
  close(): Promise<void>
}

/** How a sandbox of one test differs from the others. */
export interface Wish extends Partial<Omit<SandboxSpec, 'limits'>> {
  readonly limits?: ResourceLimits
}

/** The engine, made at the first test that needs it and asked once what it can do. */
export function bed(options: ConformanceOptions): Bed {
  let engine: Promise<SandboxEngine> | undefined
  let told: Promise<SandboxReport> | undefined
  let missing: Promise<string | undefined> | undefined
  const living = new Set<Sandbox>()
  const made = (): Promise<SandboxEngine> => (engine ??= Promise.resolve(options.makeEngine()))
  const report = (): Promise<SandboxReport> => (told ??= made().then((it) => it.report()))

  const create = async (wish: Wish = {}, signal?: AbortSignal): Promise<Sandbox> => {
    const { limits, ...rest } = wish
    const spec = {
      ...options.spec,
      ...rest,
      limits: sandboxLimits(resolveLimits({ ...options.spec?.limits, ...limits })),
    }
    const sandbox = await (await made()).create(spec, signal === undefined ? {} : { signal })
    living.add(sandbox)
    return sandbox
  }

  return {
    test(name, body, needs) {
      options.it(name, async (context) => {
        missing ??= options.unavailable?.() ?? Promise.resolve(undefined)
        const why = (await missing) ?? needs?.(await report())
        if (why !== undefined) return skip(context, `${options.name}: ${name}: ${why}`)
        return body()
      })
    },
    async with(wish, use) {
      const sandbox = await create(wish)
      const peer = new HarnessPeer(sandbox)
      try {
        await use(peer, sandbox)
        assert.deepEqual(peer.violations, [], 'the harness sent what is no frame of the protocol')
      } finally {
        await sandbox.destroy()
      }
    },
    create,
    report,
    async close() {
      await Promise.all([...living].map((sandbox) => sandbox.destroy()))
      await (await engine)?.close()
      const left = (await options.leftovers?.()) ?? []
      assert.deepEqual(left, [], 'something is left although every sandbox was destroyed')
    },
  }
}

function skip(context: unknown, reason: string): void {
  console.log(`skipped: ${reason}`)
  if (typeof context !== 'object' || context === null || !('skip' in context)) return
  if (typeof context.skip === 'function') (context.skip as (reason: string) => void).call(context, reason)
}
