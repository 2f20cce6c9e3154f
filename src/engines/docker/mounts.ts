import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, resolve, sep } from 'node:path'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { INSIDE, type SandboxSpec } from '../../sandbox/index.ts'
import type { DockerEngineOptions, HostResource } from './options.ts'

/** The rules for mounts: the options, and the location of the daemon. */
export interface MountRules extends Pick<DockerEngineOptions, 'allowHostPaths' | 'hostPathMap' | 'resources'> {
  /** The daemon may be on another machine. */
  readonly remote: boolean
  /** The daemon's address, for messages. */
  readonly address: string
}

/** Paths of the host that are never mounted: through them a script could control the machine. */
const NEVER = [
  '/proc',
  '/sys',
  '/dev',
  '/boot',
  '/run/docker.sock',
  '/var/run/docker.sock',
  '/run/docker',
  '/run/containerd',
  '/run/podman',
  '/run/crio',
  '/run/dbus',
  '/run/systemd',
  '/var/lib/docker',
  '/var/lib/containerd',
  '/var/lib/sandglass',
]
/** System directories that a mount must not cover. */
const SYSTEM = ['/bin', '/etc', '/lib', '/lib32', '/lib64', '/libx32', '/run', '/sbin', '/usr']
/** Directories of the sandbox itself: no mount may be at, inside or above them. */
const OURS = [...INSIDE.scratch, '/proc', '/sys', '/dev', INSIDE.packages, INSIDE.tools, INSIDE.harness]

/**
 * Checks the resources and returns the mounts for the daemon.
 * @throws SandglassError `mount_refused`, naming the path and the rule.
 */
export async function checkMounts(rules: MountRules): Promise<readonly HostResource[]> {
  const mounts = await Promise.all((rules.resources ?? []).map((one) => checkMount(one, rules)))
  const targets = mounts.map(({ target }) => target)
  const twice = targets.find((target, index) => targets.indexOf(target) !== index)
  if (twice !== undefined)
    throw mountError(`${twice} is the target of more than one resource; give each a target of its own`)
  return mounts
}

/**
 * Checks the directories of a spec and returns their paths for the daemon.
 * @throws SandglassError `packages_unreadable`, `mount_refused`.
 */
export async function checkSpecDirectories(
  { packages, toolsDir }: SandboxSpec,
  rules: MountRules,
): Promise<{ readonly packages: string | undefined; readonly toolsDir: string | undefined }> {
  const [first, second] = await Promise.all([
    packages === undefined ? undefined : checkDirectory('packages', packages, rules),
    toolsDir === undefined ? undefined : checkDirectory('toolsDir', toolsDir, rules),
  ])
  return { packages: first, toolsDir: second }
}

/** Translates a path of this host to the daemon's: the longest matching prefix of the map is replaced. */
export function translatePath(path: string, map: Readonly<Record<string, string>> = {}): string {
  const longest = prefixOf(path, map)
  if (longest === undefined) return path
  const rest = path.slice(longest.bare === sep ? 0 : longest.bare.length)
  return `${withoutTrailingSlash(map[longest.prefix] ?? '')}${rest}`.replace(/^\/\//, '/') || '/'
}

async function checkMount({ source, target }: HostResource, rules: MountRules): Promise<HostResource> {
  if (!isAbsolute(source) || !isAbsolute(target)) throw mountError(`${source} and ${target} must be absolute paths`)
  const inside = resolve(target)
  if (SYSTEM.includes(inside) || OURS.some((path) => isWithin(inside, path) || isWithin(path, inside))) {
    throw mountError(`${target} belongs to the sandbox itself; choose another target, for example /data`)
  }
  const real = await realpath(source).catch((error: unknown) => {
    throw mountError(`${source} cannot be read: ${messageOf(error)}`)
  })
  const allowed = await Promise.all(
    (rules.allowHostPaths ?? []).map((path) => realpath(path).catch(() => resolve(path))),
  )
  const named = real === source ? source : `${source} (${real})`
  if (!allowed.some((path) => isWithin(real, path)))
    throw mountError(`${named} is not below any path of allowHostPaths; add its directory there to allow it`)
  const kind = await stat(real)
  const closed = [...NEVER, ...(await socketOf(rules))]
  if (real === '/' || !(kind.isFile() || kind.isDirectory()) || closed.some((path) => overlaps(real, path))) {
    throw mountError(`${named} would give scripts access to the host; it is never mounted`)
  }
  return { source: toDaemonPath('resources', real, rules), target: inside }
}

async function checkDirectory(option: 'packages' | 'toolsDir', path: string, rules: MountRules): Promise<string> {
  const unreadable = (why: string): SandglassError =>
    new SandglassError('packages_unreadable', `${option}: ${path} ${why}`)
  const real = await realpath(path).catch((error: unknown) => {
    throw unreadable(`cannot be read: ${messageOf(error)}`)
  })
  const found = await stat(real)
  if (!found.isDirectory()) throw unreadable('is not a directory')
  // A container has a uid of its own, and no capability to override permissions.
  if ((found.mode & 0o005) !== 0o005) throw unreadable(`is closed to other users: chmod o+rx ${real} and its files`)
  return toDaemonPath(option, real, rules)
}

function toDaemonPath(option: string, real: string, { hostPathMap, remote, address }: MountRules): string {
  if (remote && prefixOf(real, hostPathMap ?? {}) === undefined) {
    throw mountError(
      `${real} is a path of this machine, and the daemon at ${address} may run on another one: copy it there and map the ` +
        "path with hostPathMap; { '/': '/' } declares that both see the same files",
      option,
    )
  }
  return translatePath(real, hostPathMap)
}

/** The socket of the daemon in use. */
async function socketOf({ address }: MountRules): Promise<string[]> {
  if (!address.startsWith('unix://')) return []
  const path = address.slice('unix://'.length)
  return [path, await realpath(path).catch(() => path)]
}

function mountError(why: string, option = 'resources'): SandglassError {
  return new SandglassError('mount_refused', `${option === 'resources' ? 'docker.resources' : option}: ${why}`)
}

function prefixOf(
  path: string,
  map: Readonly<Record<string, string>>,
): { readonly prefix: string; readonly bare: string } | undefined {
  const prefixes = Object.keys(map).map((prefix) => ({ prefix, bare: withoutTrailingSlash(prefix) }))
  return prefixes.filter(({ bare }) => isWithin(path, bare)).toSorted((a, b) => b.bare.length - a.bare.length)[0]
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, '') || '/' : path
}

function overlaps(path: string, other: string): boolean {
  return isWithin(path, other) || isWithin(other, path)
}

function isWithin(path: string, directory: string): boolean {
  return directory === '/' || path === directory || path.startsWith(`${directory}/`)
}
