import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, resolve, sep } from 'node:path'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { INSIDE, type SandboxSpec } from '../../sandbox/index.ts'
import type { DockerEngineOptions, HostResource } from './options.ts'

/** What decides about mounts: the options, and where the daemon is. */
export interface MountRules extends Pick<DockerEngineOptions, 'allowHostPaths' | 'hostPathMap' | 'resources'> {
  /** The daemon may be on another machine. */
  readonly remote: boolean
  /** The daemon's address, for messages. */
  readonly address: string
}

/** Paths of the host that no list can allow: with them a script reaches the machine. */
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
/** Directories of the system that cannot be covered as a whole. */
const SYSTEM = ['/bin', '/etc', '/lib', '/lib32', '/lib64', '/libx32', '/run', '/sbin', '/usr']
/** Places of the sandbox itself: nothing may be put there, in there or over them. */
const OURS = [...INSIDE.scratch, '/proc', '/sys', '/dev', INSIDE.packages, INSIDE.tools, INSIDE.harness]

/**
 * The resources as the daemon is to mount them.
 * @throws SandglassError `mount_refused`, naming the path and the rule.
 */
export async function allowedMounts(rules: MountRules): Promise<readonly HostResource[]> {
  const mounts = await Promise.all((rules.resources ?? []).map((one) => allowed(one, rules)))
  const targets = mounts.map(({ target }) => target)
  const twice = targets.find((target, index) => targets.indexOf(target) !== index)
  if (twice !== undefined) throw refused(`${twice} is the target of more than one`)
  return mounts
}

/**
 * The directories of a spec as the daemon is to mount them.
 * @throws SandglassError `packages_unreadable`, `mount_refused`.
 */
export async function specDirectories(
  { packages, toolsDir }: SandboxSpec,
  rules: MountRules,
): Promise<{ readonly packages: string | undefined; readonly toolsDir: string | undefined }> {
  const [first, second] = await Promise.all([
    packages === undefined ? undefined : directory('packages', packages, rules),
    toolsDir === undefined ? undefined : directory('toolsDir', toolsDir, rules),
  ])
  return { packages: first, toolsDir: second }
}

/** A path of this host as the daemon names it: the longest prefix of the map that fits is replaced. */
export function asDaemonSees(path: string, map: Readonly<Record<string, string>> = {}): string {
  const longest = prefixOf(path, map)
  if (longest === undefined) return path
  const rest = path.slice(longest.bare === sep ? 0 : longest.bare.length)
  return `${bareOf(map[longest.prefix] ?? '')}${rest}`.replace(/^\/\//, '/') || '/'
}

async function allowed({ source, target }: HostResource, rules: MountRules): Promise<HostResource> {
  if (!isAbsolute(source) || !isAbsolute(target)) throw refused(`${source} and ${target} must be absolute paths`)
  const inside = resolve(target)
  if (SYSTEM.includes(inside) || OURS.some((path) => within(inside, path) || within(path, inside))) {
    throw refused(`${target} belongs to the sandbox itself; choose another target, for example /data`)
  }
  const real = await realpath(source).catch((error: unknown) => {
    throw refused(`${source} cannot be read: ${messageOf(error)}`)
  })
  const lists = await Promise.all((rules.allowHostPaths ?? []).map((path) => realpath(path).catch(() => resolve(path))))
  const named = real === source ? source : `${source} (${real})`
  if (!lists.some((path) => within(real, path))) throw refused(`${named} does not lie below one of allowHostPaths`)
  const kind = await stat(real)
  const closed = [...NEVER, ...(await socketOf(rules))]
  if (real === '/' || !(kind.isFile() || kind.isDirectory()) || closed.some((path) => touches(real, path))) {
    throw refused(`${named} gives a script the host; it is never mounted`)
  }
  return { source: seen('resources', real, rules), target: inside }
}

async function directory(option: 'packages' | 'toolsDir', path: string, rules: MountRules): Promise<string> {
  const unreadable = (why: string): SandglassError =>
    new SandglassError('packages_unreadable', `${option}: ${path} ${why}`)
  const real = await realpath(path).catch((error: unknown) => {
    throw unreadable(`cannot be read: ${messageOf(error)}`)
  })
  const found = await stat(real)
  if (!found.isDirectory()) throw unreadable('is no directory')
  // A container has a uid of its own, and no capability that would open what is shut to it.
  if ((found.mode & 0o005) !== 0o005) throw unreadable(`is shut to other users: chmod o+rx ${real}, and what is in it`)
  return seen(option, real, rules)
}

function seen(option: string, real: string, { hostPathMap, remote, address }: MountRules): string {
  if (remote && prefixOf(real, hostPathMap ?? {}) === undefined) {
    throw refused(
      `${real} is a path of this machine, and the daemon at ${address} may run on another one: copy it there and name the ` +
        "place with hostPathMap; { '/': '/' } says that both see the same files",
      option,
    )
  }
  return asDaemonSees(real, hostPathMap)
}

/** The socket of the daemon in use, wherever it is. */
async function socketOf({ address }: MountRules): Promise<string[]> {
  if (!address.startsWith('unix://')) return []
  const path = address.slice('unix://'.length)
  return [path, await realpath(path).catch(() => path)]
}

function refused(why: string, option = 'resources'): SandglassError {
  return new SandglassError('mount_refused', `${option === 'resources' ? 'docker.resources' : option}: ${why}`)
}

function prefixOf(
  path: string,
  map: Readonly<Record<string, string>>,
): { readonly prefix: string; readonly bare: string } | undefined {
  const prefixes = Object.keys(map).map((prefix) => ({ prefix, bare: bareOf(prefix) }))
  return prefixes.filter(({ bare }) => within(path, bare)).toSorted((a, b) => b.bare.length - a.bare.length)[0]
}

function bareOf(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, '') || '/' : path
}

function touches(path: string, other: string): boolean {
  return within(path, other) || within(other, path)
}

function within(path: string, directory: string): boolean {
  return directory === '/' || path === directory || path.startsWith(`${directory}/`)
}
