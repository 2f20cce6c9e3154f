import type { PreparedEnvironment } from './environments/index.ts'
import type { ExecutionResult } from './executor/index.ts'
import type { RunOptions, SandglassOptions } from './options/index.ts'
import { type Lease, SandboxPool } from './pool/index.ts'
import { type FinishedRun, Preloads } from './preloads.ts'
import { checkoutOptions, nameOf, specOf } from './run-spec.ts'
import { assertEnforced, ping, type ResourceLimits, type SandboxEngine, type SandboxSpec } from './sandbox/index.ts'
import { definedOf } from './support/index.ts'

const PING_TIMEOUT_MS = 2000

/** Lends sandboxes by limits and packages. New ones preload the modules that recent scripts imported. */
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

  /** Records the imports of a run. Runs switch to sandboxes with new preloads when the first one is ready. */
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
    // If this fails, runs continue to use the previous sandboxes.
    void this.#switchPreloads(limits, prepared, modules).catch(() => {})
  }

  async #switchPreloads(
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
      // A script chose the modules. Without this, the pool would try to start such sandboxes again and again.
      this.#preloads.giveUp(environment, modules)
      this.pool.dropIdle(name)
      throw error
    }
    const { failed } = lease.sandbox.ready.preload
    await lease.release()
    const refused = failed.map((one) => one.name).filter((one) => modules.includes(one))
    if (refused.length > 0) {
      // A script invented them, or only their own package can load them. A warning in each run would help nobody.
      this.#preloads.refuse(environment, refused)
      this.pool.dropIdle(name)
      const left = modules.filter((one) => !refused.includes(one))
      if (left.length > 0) await this.#switchPreloads(limits, prepared, left)
      return
    }
    this.#preloads.adopt(environment, modules)
    this.pool.dropIdle(before)
  }

  /** The name of the sandboxes for a run. */
  #nameOf(limits: ResourceLimits | undefined, environment: PreparedEnvironment | undefined): string {
    // Most runs have no limits and packages of their own.
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
