import { errnoOf, SandglassError } from '../../errors/index.ts'
import type { EngineModule, ReportLine, ReportReason, Resource, SandboxReport } from '../../sandbox/index.ts'
import { dockerEngine } from './engine.ts'
import type { DockerEngineOptions } from './options.ts'
import { reportOtherRuntimes, type RuntimeReport } from './other-runtimes.ts'
import { type ContainerResource, listResources, pruneOrphans } from './containers.ts'

/** The engine `docker` for the table of engines. */
export const dockerModule: EngineModule<DockerEngineOptions> = {
  makeEngine: dockerEngine,
  extendReport: addRuntimes,
  reportLines: (probes) => [
    ['python', `${String(probes['python_version'])} (${String(probes['image'])})`],
    ...runtimeLines(probes),
    ['daemon', String(probes['daemon'])],
    ['version', String(probes['daemon_version'])],
    ['kernel', String(probes['kernel'])],
  ],
  listResources: () => resourcesFrom(listResources),
  pruneOrphans: () => resourcesFrom(pruneOrphans),
}

/** Adds the level of each runtime that is not the default one, and a warning for each that cannot be used. */
async function addRuntimes(report: SandboxReport, signal: AbortSignal): Promise<SandboxReport> {
  const others = report.usable ? await reportOtherRuntimes(report.probes, {}, signal) : []
  if (others.length === 0) return report
  const usable = others.filter((other) => other.report.usable)
  return {
    ...report,
    reasons: [...report.reasons, ...others.flatMap(warnOfRuntime)],
    probes: { ...report.probes, runtime_levels: usable.map((other) => `${other.name}: ${other.report.level}`) },
  }
}

/** The engine works without the runtime, so that its errors are warnings. */
function warnOfRuntime({ name, report }: RuntimeReport): ReportReason[] {
  if (report.usable) return []
  return report.reasons.map(({ code, message, remedy }) => ({
    severity: 'warning',
    code,
    message: `the runtime ${name}: ${message}`,
    remedy,
  }))
}

/** The runtimes of the daemon, with the level of those that were tried. */
function runtimeLines({
  runtimes,
  runtime_default: byDefault,
  runtime_levels: levels,
}: SandboxReport['probes']): ReportLine[] {
  const names = textsOf(runtimes)
  if (names.length === 0) return []
  const known = new Map(textsOf(levels).map((text) => text.split(': ', 2) as [string, string]))
  const texts = names.map((name) => {
    const more = [...(name === byDefault ? ['default'] : []), ...(known.has(name) ? [known.get(name)] : [])]
    return more.length === 0 ? name : `${name} (${more.join(', ')})`
  })
  return [['runtimes', texts.join(', ')]]
}

function textsOf(value: SandboxReport['probes'][string] | undefined): readonly string[] {
  return Array.isArray(value) ? (value as readonly string[]) : []
}

/** Lists containers; without Docker, an empty list. */
async function resourcesFrom(containers: () => Promise<readonly ContainerResource[]>): Promise<Resource[]> {
  try {
    return (await containers()).map(resourceOf)
  } catch (error) {
    if (error instanceof SandglassError && isWithoutDocker(error)) return []
    throw error
  }
}

/** True if no daemon is configured and none listens at the default address. Any other daemon may have containers. */
function isWithoutDocker({ code, cause }: SandglassError): boolean {
  if ((process.env['DOCKER_HOST'] ?? '') !== '') return false
  if (code === 'docker_client_missing') return true
  return code === 'docker_unreachable' && ['ENOENT', 'ECONNREFUSED'].includes(errnoOf(cause) ?? '')
}

function resourceOf({ id, name, owner }: ContainerResource): Resource {
  return { kind: 'container', id, sandbox: name, owner: owner === 'dead' ? 'gone' : owner, uid: null }
}
