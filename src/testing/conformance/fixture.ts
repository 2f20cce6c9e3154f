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
import { createSandglass, type Sandglass } from '../../sandglass.ts'
import { HarnessPeer } from './peer.ts'

/**
 * A wall: one of the parts that keep the promises of an engine. `harness` is the Python code that every engine runs;
 * `broker` serves the protocol between runs and counts during one; `channel` carries bytes; `engine` starts and ends
 * sandboxes and gives them files; `kernel` is the operating system around a script: users, processes, limits, file
 * systems; `webassembly` is Python without an operating system of its own.
 */
export type Wall = 'harness' | 'broker' | 'channel' | 'engine' | 'kernel' | 'webassembly'

/** A test of the suite, and the walls that decide whether it passes. */
export interface ConformanceCase {
  readonly part: string
  readonly title: string
  readonly walls: readonly Wall[]
}

/** The cases to run: all that depend on one of the walls, and of the others the first and each `sampleEvery`th after it. */
export interface CaseSelection {
  readonly walls: readonly Wall[]
  readonly sampleEvery: number
}

/** The function that a test runner calls; its context may have a `skip`, as those of vitest and node:test do. */
export type TestBody = (context: unknown) => Promise<void>

/** The engine to test, and the test runner. */
export interface ConformanceOptions {
  readonly name: string
  /** Called once. */
  readonly makeEngine: () => SandboxEngine | Promise<SandboxEngine>
  /** `describe` of the caller's test runner. */
  readonly describe: (name: string, body: () => void) => unknown
  /** `it` or `test` of the caller's test runner. */
  readonly it: (name: string, body: TestBody) => unknown
  /** The cases to run, for an engine that shares walls with one that runs all of them. Default: every case. */
  readonly only?: CaseSelection
  /** The spec of every sandbox of the tests. */
  readonly spec?: Partial<SandboxSpec>
  /** The directories in /home that the image of its sandboxes has itself. Default: none. */
  readonly imageHomes?: readonly string[]
  /** The reason why nothing can be tested on this machine, or undefined. Every test is then skipped with it. */
  readonly unavailable?: () => Promise<string | undefined>
  /** The resources that exist after every sandbox is destroyed. The suite fails unless the list is empty. */
  readonly orphans?: () => Promise<readonly unknown[]>
}

/** Declares a test that depends on these walls. `needs` returns what the engine lacks for it, or undefined. */
export type DeclareTest = (
  title: string,
  walls: readonly Wall[],
  body: () => Promise<void>,
  needs?: (report: SandboxReport) => string | undefined,
) => void

/** A test's work with a sandbox and its peer. */
export type UseOfSandbox = (peer: HarnessPeer, sandbox: Sandbox) => Promise<void>

/** The tools that the tests of a part use. */
export interface Fixture {
  readonly test: DeclareTest
  readonly imageHomes: readonly string[]
  /**
   * Runs `use` with a sandbox of this spec and its peer, and destroys the sandbox. Fails for a frame outside of the protocol.
   */
  with(spec: SpecOverride, use: UseOfSandbox): Promise<void>
  /**
   * Runs `use` in the same way with the sandbox of an earlier test, or with a new one if that cannot be reused. It has the default
   * spec, and its number of runs is unknown.
   */
  withAny(use: UseOfSandbox): Promise<void>
  create(spec?: SpecOverride, signal?: AbortSignal): Promise<Sandbox>
  report(): Promise<SandboxReport>
  /** A Sandglass on the engine, the same for all tests. */
  sandglass(): Promise<Sandglass>
  close(): Promise<void>
}

/** The differences of one test's sandbox from the others. */
export interface SpecOverride extends Partial<Omit<SandboxSpec, 'limits'>> {
  readonly limits?: ResourceLimits
}

/** Makes the engine at the first test that needs it, and asks it once for its report. */
export function createFixture(options: ConformanceOptions): Fixture {
  let engine: Promise<SandboxEngine> | undefined
  let knownReport: Promise<SandboxReport> | undefined
  let opened: Promise<Sandglass> | undefined
  let missing: Promise<string | undefined> | undefined
  const living = new Set<Sandbox>()
  let kept: HarnessPeer | undefined
  const getEngine = (): Promise<SandboxEngine> => (engine ??= Promise.resolve(options.makeEngine()))
  const report = (): Promise<SandboxReport> => (knownReport ??= getEngine().then((it) => it.report()))

  const create = async (override: SpecOverride = {}, signal?: AbortSignal): Promise<Sandbox> => {
    const { limits, ...rest } = override
    const spec = {
      ...options.spec,
      ...rest,
      limits: sandboxLimits(resolveLimits({ ...options.spec?.limits, ...limits })),
    }
    const sandbox = await (await getEngine()).create(spec, signal === undefined ? {} : { signal })
    living.add(sandbox)
    return sandbox
  }

  return {
    imageHomes: options.imageHomes ?? [],
    test(title, _walls, body, needs) {
      options.it(title, async (context) => {
        missing ??= options.unavailable?.() ?? Promise.resolve(undefined)
        const why = (await missing) ?? needs?.(await report())
        if (why !== undefined) return skip(context, `${options.name}: ${title}: ${why}`)
        return body()
      })
    },
    async with(override, use) {
      const sandbox = await create(override)
      try {
        await useWith(new HarnessPeer(sandbox), use)
      } finally {
        await sandbox.destroy()
      }
    },
    async withAny(use) {
      const before = kept
      kept = undefined // the sandbox of a failed test is not reused
      const canServe = await before?.canServe()
      if (canServe === false) await before?.sandbox.destroy()
      const peer = canServe === true && before !== undefined ? before : new HarnessPeer(await create())
      try {
        await useWith(peer, use)
        kept = peer
      } finally {
        if (kept === undefined) await peer.sandbox.destroy()
      }
    },
    create,
    report,
    sandglass: () => (opened ??= getEngine().then((engine) => createSandglass({ engine, poolSize: 0 }))),
    async close() {
      await Promise.all([...living].map((sandbox) => sandbox.destroy()))
      await (await opened)?.close()
      await (await engine)?.close()
      const left = (await options.orphans?.()) ?? []
      assert.deepEqual(left, [], 'every sandbox is destroyed, and these resources still exist')
    },
  }
}

async function useWith(peer: HarnessPeer, use: UseOfSandbox): Promise<void> {
  await use(peer, peer.sandbox)
  assert.deepEqual(peer.violations, [], 'the harness sent lines that are not frames of the protocol')
}

function skip(context: unknown, reason: string): void {
  console.log(`skipped: ${reason}`)
  // The context of vitest is a function.
  const { skip: skipTest } = Object(context) as { readonly skip?: unknown }
  if (typeof skipTest === 'function') (skipTest as (reason: string) => void).call(context, reason)
}
