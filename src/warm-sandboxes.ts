import type { PreparedEnvironment } from './environments/index.ts'
import type { ExecutionResult } from './executor/index.ts'
import type { RunOptions, SandglassOptions } from './options/index.ts'
import { type Lease, SandboxPool } from './pool/index.ts'
import { type FinishedRun, Preloads } from './preloads.ts'
import { checkoutOptions, nameOf, specOf } from './run-spec.ts'
import { assertEnforced, ping, type ResourceLimits, type SandboxEngine, type SandboxSpec } from './sandbox/index.ts'
import { definedOf } from './support/index.ts'

const PING_TIMEOUT_MS = 2000

/** Lends sandboxes by limits and packages. New ones load ahead the modules that recent scripts imported. */
export class WarmSandboxes {
  readonly pool: SandboxPool
  /** The name of the sandboxes without packages of an environment. */
  readonly plain: string
  readonly #options: SandglassOptions
  readonly #preloads = new Preloads()
  readonly #names: Set<string>

  constructor(engine: SandboxEngine, options: SandglassOptions) {
    const spec = specOf(options, undefined, undefined)
    this.#options = options
    this.plain = nameOf(spec)
    this.#names = new Set([this.plain])
    this.pool = new SandboxPool({
      engine,
      specs: { [this.plain]: spec },
      ...definedOf(options, ['poolSize', 'maxOverflow', 'maxUses', 'maxIdleBytes', 'checkoutTimeoutMs']),
      isHealthy: (sandbox) => ping(sandbox.channel, PING_TIMEOUT_MS),
    })
  }

  /** Leases a sandbox of a spec that is kept warm from now on. */
  checkoutOwn(spec: SandboxSpec, options: Pick<RunOptions, 'signal'>): Promise<Lease> {
    return this.pool.checkout(this.#nameFor(spec, false), options)
  }

  /** Leases a sandbox with these limits and packages. @throws SandglassError `limit_not_enforceable` */
  async checkout(
    limits: ResourceLimits | undefined,
    environment: PreparedEnvironment | undefined,
    run: RunOptions,
  ): Promise<Lease> {
    const lease = await this.pool.checkout(this.#nameOf(limits, environment), checkoutOptions(run))
    try {
      assertEnforced(lease.sandbox.info, { ...this.#options.limits, ...limits })
      return lease
    } catch (error) {
      await lease.release()
      throw error
    }
  }

  /** Notes what a run imported. Runs change over when the first sandbox with what they need is ready. */
  noteImports(
    run: FinishedRun,
    { errorKind }: Pick<ExecutionResult, 'errorKind'>,
    limits: ResourceLimits | undefined,
    prepared: PreparedEnvironment | undefined,
  ): void {
    const { poolSize = 2 } = this.#options
    if (errorKind !== null || prepared === undefined || poolSize === 0) return
    const { environment } = prepared
    const modules = this.#preloads.note(environment, run)
    if (modules === undefined) return
    // Without such sandboxes, runs stay with those that they have.
    void this.#changeOver(limits, prepared, modules).catch(() => {})
  }

  async #changeOver(
    limits: ResourceLimits | undefined,
    prepared: PreparedEnvironment,
    modules: readonly string[],
  ): Promise<void> {
    const { environment } = prepared
    const before = this.#nameFor(this.#specFor(limits, prepared, this.#preloads.modulesFor(environment)))
    const name = this.#nameFor(this.#specFor(limits, prepared, modules))
    let lease: Lease
    try {
      await this.pool.prewarm(name)
      lease = await this.pool.checkout(name)
    } catch (error) {
      // A script chose the modules, and the pool would try to start such sandboxes again and again.
      this.#preloads.giveUp(environment, modules)
      this.pool.dropIdle(name)
      throw error
    }
    const { failed } = lease.sandbox.ready.preload
    await lease.release()
    const refused = failed.map((one) => one.name).filter((one) => modules.includes(one))
    if (refused.length > 0) {
      // A script made them up, or they can be loaded only by what loads them. A warning of each run would be about nothing.
      this.#preloads.refuse(environment, refused)
      this.pool.dropIdle(name)
      const left = modules.filter((one) => !refused.includes(one))
      if (left.length > 0) await this.#changeOver(limits, prepared, left)
      return
    }
    this.#preloads.adopt(environment, modules)
    this.pool.dropIdle(before)
  }

  /** The name of the sandboxes for a run. */
  #nameOf(limits: ResourceLimits | undefined, environment: PreparedEnvironment | undefined): string {
    // Most runs ask for nothing of their own.
    if (limits === undefined && environment === undefined) return this.plain
    return this.#nameFor(this.#specFor(limits, environment, this.#preloads.modulesFor(environment?.environment)))
  }

  #specFor(
    limits: ResourceLimits | undefined,
    environment: PreparedEnvironment | undefined,
    ahead: readonly string[],
  ): SandboxSpec {
    const spec = specOf(this.#options, limits, environment)
    return ahead.length === 0 ? spec : { ...spec, preload: [...(spec.preload ?? []), ...ahead] }
  }

  /** The name of a spec in the pool. */
  #nameFor(spec: SandboxSpec, occasional: boolean = true): string {
    const name = nameOf(spec)
    if (!this.#names.has(name)) this.pool.addSpec(name, spec, { occasional })
    this.#names.add(name)
    return name
  }
}
