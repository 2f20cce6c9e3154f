import type { PreparedEnvironment } from './environments/index.ts'
import type { ExecutionResult } from './executor/index.ts'
import type { RunOptions, SandglassOptions } from './options/index.ts'
import { type Lease, SandboxPool } from './pool/index.ts'
import { Preloads } from './preloads.ts'
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
    const spec = this.#specFor(limits, environment, this.#preloads.modulesFor(environment?.environment))
    const lease = await this.pool.checkout(this.#nameFor(spec), checkoutOptions(run))
    try {
      assertEnforced(lease.sandbox.info, { ...this.#options.limits, ...limits })
      return lease
    } catch (error) {
      await lease.release()
      throw error
    }
  }

  /** Notes the imports of a script that ran. Runs change over when the first sandbox with what they need is ready. */
  noteImports(
    script: string,
    { errorKind }: Pick<ExecutionResult, 'errorKind'>,
    limits: ResourceLimits | undefined,
    prepared: PreparedEnvironment | undefined,
  ): void {
    const { poolSize = 2 } = this.#options
    if (errorKind !== null || prepared === undefined || poolSize === 0) return
    const { environment } = prepared
    const modules = this.#preloads.note(environment, script)
    if (modules === undefined) return
    const before = this.#nameFor(this.#specFor(limits, prepared, this.#preloads.modulesFor(environment)))
    const changeOver = (): void => {
      this.#preloads.adopt(environment, modules)
      this.pool.dropIdle(before)
    }
    // Without such sandboxes, runs stay with those that they have.
    this.pool.prewarm(this.#nameFor(this.#specFor(limits, prepared, modules))).then(changeOver, () => {})
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
