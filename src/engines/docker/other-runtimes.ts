import type { SandboxReport } from '../../sandbox/index.ts'
import { dockerEngine } from './engine.ts'
import type { DockerEngineOptions } from './options.ts'

/** What a runtime of the daemon gives. */
export interface RuntimeReport {
  readonly name: string
  readonly report: SandboxReport
}

/**
 * What each registered runtime that is not the default one would give, from a container of its own: whether one is gVisor
 * is in no name. Those that share the daemon's kernel whatever happens are left out.
 * @param probes of the report on the same options.
 */
export async function reportOtherRuntimes(
  { runtimes, runtime_default: byDefault }: SandboxReport['probes'],
  options: DockerEngineOptions = {},
  signal?: AbortSignal,
): Promise<RuntimeReport[]> {
  const names = Array.isArray(runtimes) ? (runtimes as readonly string[]) : []
  const found: RuntimeReport[] = []
  for (const name of names.filter((one) => one !== byDefault && !SHARES_KERNEL.test(one))) {
    signal?.throwIfAborted()
    const engine = dockerEngine({ ...options, runtime: name })
    try {
      found.push({ name, report: await engine.report(signal === undefined ? {} : { signal }) })
    } finally {
      await engine.close()
    }
  }
  return found
}

const SHARES_KERNEL = /^(runc|crun|youki|io\.containerd\.(runc|runtime)\..*)$/
