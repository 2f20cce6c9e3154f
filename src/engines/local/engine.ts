import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import {
  type CreateOptions,
  failedChecks,
  type SandboxEngine,
  type SandboxReport,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import type { CgroupHost } from './cgroup-host.ts'
import { type Cgroup, makeCgroup } from './cgroups.ts'
import { limitsInForce, type EngineEnvironment, missingLimits, prepare } from './environment.ts'
import { type Launched, launch } from './launch.ts'
import type { LocalEngineOptions } from './options.ts'
import { type LocalSandbox, probe } from './probe.ts'
import { touch } from './staging.ts'

/**
 * Makes sandboxes of Linux namespaces with bubblewrap, on this machine. It does nothing before its first use.
 */
export function localEngine(options: LocalEngineOptions = {}): SandboxEngine {
  let environment: Promise<EngineEnvironment> | undefined
  const getEnvironment = (): Promise<EngineEnvironment> => (environment ??= prepare(options))
  const prepared = (): Promise<EngineEnvironment> =>
    getEnvironment().catch((error: unknown) => {
      environment = undefined // a missing part may be installed before the next call
      throw error
    })
  return {
    name: 'local',
    create: async (spec, given = {}) => createSandbox(await prepared(), options, spec, given),
    // Prepared once: a second time could come after `close`, and would take a slot that nobody releases.
    report: async (given = {}): Promise<SandboxReport> => {
      const at = prepared()
      at.catch(() => undefined) // told by `create`
      return probe({
        getEnvironment: () => at,
        create: async (spec) => createSandbox(await at, options, spec, given),
      })
    },
    async close() {
      const at = await environment?.catch(() => undefined)
      environment = undefined
      await at?.orphans.close()
      if (at?.uids === undefined) at?.slot.release()
      at?.uids?.close()
    },
  }
}

async function createSandbox(
  at: EngineEnvironment,
  options: LocalEngineOptions,
  spec: SandboxSpec,
  given: CreateOptions,
): Promise<LocalSandbox> {
  const id = `sg-${randomUUID()}`
  const taken = await at.uids?.take()
  let cgroup: Cgroup | undefined
  let launched: Launched | undefined
  let inputsDir: string | undefined
  const release = async (): Promise<void> => {
    cgroup?.close()
    await at.orphans.remove(cgroup?.paths ?? [], () => {
      at.state.records.remove(id)
      if (taken !== undefined) at.uids?.release(taken.uid)
    })
  }
  try {
    const uid = taken?.uid ?? process.getuid?.() ?? 0
    const [packages, toolsDir] = await Promise.all([
      spec.packages === undefined ? undefined : at.directories.path(spec.packages, 'packages', uid),
      spec.toolsDir === undefined ? undefined : at.directories.path(spec.toolsDir, 'toolsDir', uid),
    ])
    await touch(at.harness)
    const { number: slot, owner } = taken?.slot ?? at.slot
    at.state.records.write({
      id,
      slot,
      owner,
      uid: taken?.uid ?? null,
      host_pid: process.pid,
      cgroups: at.cgroups.parents.map(({ path }) => join(path, id)),
      created_at: new Date().toISOString(),
    })
    inputsDir = spec.activities === true ? at.state.records.makeInputs(id, taken?.uid) : undefined
    // After the record: without one, the group would have no owner if this process is killed.
    cgroup = at.cgroups.parents.length > 0 ? makeGroup(at.cgroups, id, spec) : undefined
    if (given.background === true) cgroup?.setBackground(true)
    launched = await launch({
      id,
      openInfo: () => at.state.records.openInfo(id),
      limits: spec.limits,
      harness: at.harness,
      pythonPaths: at.python.needed,
      packages,
      toolsDir,
      inputsDir,
      bwrap: at.bwrap,
      python: at.python.path,
      uid: taken?.uid,
      cgroup,
      spec,
      startTimeoutMs: options.startTimeoutMs ?? 20_000,
      signal: given.signal,
    })
    if (given.background === true) cgroup?.setBackground(false)
  } catch (error) {
    await release()
    throw shortageError(error, 'no sandbox can be made') ?? error
  }
  const failed = [...failedChecks(launched.ready.checks), ...launched.outside.problems]
  if (failed.length > 0) {
    await launched.kill()
    await release()
    throw new SandglassError('sandbox_setup_failed', `the sandbox failed its checks: ${failed.join('; ')}`)
  }
  const sandbox = sandboxOf(id, at, spec, launched, cgroup, release)
  return inputsDir === undefined ? sandbox : { ...sandbox, inputsDir }
}

function makeGroup(host: CgroupHost, id: string, spec: SandboxSpec): Cgroup {
  try {
    return makeCgroup(host, id, spec.limits)
  } catch (error) {
    throw new SandglassError(
      'sandbox_setup_failed',
      `the control group of the sandbox could not be made: ${messageOf(error)}`,
      { cause: error },
    )
  }
}

function sandboxOf(
  id: string,
  at: EngineEnvironment,
  spec: SandboxSpec,
  launched: Launched,
  cgroup: Cgroup | undefined,
  release: () => Promise<void>,
): LocalSandbox {
  const { held } = launched
  const memoryKills = (): number | null => cgroup?.memoryKills() ?? null
  const closed = launched.closed.then(async (ending) => {
    memoryKills() // one last read, before the group with the counter is removed
    // The channel stays open until the sandbox is destroyed, because a slow reader may not have read its last frames.
    await release()
    return ending
  })
  const cpu = limitsInForce(at, held).includes('cpu') ? cgroup?.cpu : undefined
  const destroy = async (): Promise<void> => {
    cpu?.lift() // killed processes need CPU time until they are gone
    await launched.kill()
    await closed
  }
  return {
    id,
    info: {
      engine: 'local',
      level: 'os-sandbox',
      python: launched.ready.python,
      network: 'none',
      limitsEnforced: limitsInForce(at, held),
      limitsMissing: missingLimits(at, held),
      limits: spec.limits,
    },
    held,
    namespaces: launched.outside.namespaces,
    channel: launched.channel,
    ready: launched.ready,
    closed,
    memoryKills,
    ...(cpu === undefined ? {} : { liftCpuLimit: () => cpu.lift(), lowerCpuLimit: (cpus: number) => cpu.lower(cpus) }),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}
