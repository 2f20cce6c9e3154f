/**
 * A separate host for tests that restrict it: another user, another mount namespace, another PATH.
 * `child-host.ts '{"act": …}'` prints lines of JSON.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { findCgroups } from '../../../../src/engines/local/cgroup-host.ts'
import {
  listResources,
  localEngine,
  type LocalEngineOptions,
  pruneOrphans,
} from '../../../../src/engines/local/index.ts'
import { ScriptExecutor } from '../../../../src/executor/index.ts'
import { resolveLimits, type ResourceLimits, sandboxLimits, type SandboxSpec } from '../../../../src/sandbox/index.ts'

/** The instructions for a child host. */
export interface Order {
  /**
   * `report`: prints the engine's report, and the result of a script if one is given. `hold`: keeps a sandbox until stdin
   * ends. `full-disk`: fills the state directory's file system before the report, and frees it for a second one.
   * `cgroups`: prints the findings in a tree of control groups. `ps`, `prune`: print the findings of these commands.
   */
  readonly act: 'report' | 'hold' | 'full-disk' | 'cgroups' | 'ps' | 'prune'
  readonly engine?: LocalEngineOptions
  /** Limits of the held sandbox that differ from the usual ones. */
  readonly spec?: Omit<SandboxSpec, 'limits'>
  readonly script?: string
  readonly limits?: ResourceLimits
  readonly cgroups?: readonly [root: string, self: string]
}

const order = JSON.parse(process.argv[2] ?? '') as Order
const engine = localEngine(order.engine)
const say = (value: unknown): void => console.log(JSON.stringify(value))

switch (order.act) {
  case 'cgroups':
    say(findCgroups(...(order.cgroups ?? [])))
    break
  case 'ps':
    say(await listResources(order.engine?.stateDir))
    break
  case 'prune':
    say(await pruneOrphans(order.engine?.stateDir))
    break
  case 'hold': {
    const sandbox = await engine.create({ ...order.spec, limits: sandboxLimits(resolveLimits()) })
    say({ id: sandbox.id })
    for await (const _ of process.stdin);
    await sandbox.destroy()
    break
  }
  case 'full-disk': {
    const fill = `${order.engine?.stateDir}/fill`
    for (let size = 1 << 20; size >= 1; size >>= 1) append(fill, size)
    say(await engine.report())
    rmSync(fill)
    say(await engine.report())
    break
  }
  case 'report': {
    const report = await engine.report()
    if (order.script === undefined || !report.usable) {
      say({ report })
      break
    }
    await using sandbox = await engine.create({ limits: sandboxLimits(resolveLimits(order.limits)) })
    const { status, error, finalData } = await new ScriptExecutor({ mode: 'interactive' }).run({
      sandbox,
      script: order.script,
    })
    say({ report, result: { status, error, finalData } })
  }
}
await engine.close()

function append(path: string, size: number): void {
  try {
    for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' })
  } catch {
    // full for pieces of this size
  }
}
