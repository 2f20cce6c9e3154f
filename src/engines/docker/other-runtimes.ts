import type { SandboxReport } from '../../sandbox/index.ts'
import { dockerEngine } from './engine.ts'
import type { DockerEngineOptions } from './options.ts'

/** The report of one runtime of the daemon. */
export interface RuntimeReport {
  readonly name: string
  readonly report: SandboxReport
}

/**
 * Probes each registered runtime that is not the default one with a container: a name does not show whether a runtime is
 * gVisor. Runtimes that always share the daemon's kernel are skipped.
 * @param probes the probes of the report on the same options.
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
