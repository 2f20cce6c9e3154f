import { readFileSync, readlinkSync } from 'node:fs'
import { errnoOf, messageOf } from '../../errors/index.ts'

/** The namespaces that every sandbox has, if the kernel supports them. */
export const NAMESPACES = ['user', 'pid', 'net', 'ipc', 'uts', 'cgroup', 'mnt'] as const
type Namespace = (typeof NAMESPACES)[number]

/** The first process of a sandbox, as the host's kernel shows it. */
export interface Outside {
  /** The namespaces that it does not share with the host. */
  readonly namespaces: readonly Namespace[]
  /** Describes each property that differs from what it must be. */
  readonly problems: readonly string[]
}

/** The process to inspect. */
export interface InspectedProcess {
  /** The process id on the host. */
  readonly pid: number
  /** The uid that it must have outside. */
  readonly uid: number
  /** The text that bubblewrap wrote to its info descriptor. */
  readonly info: string
  /** Only tests replace it. */
  readonly readLink?: (path: string) => string
}

/** Compares the namespaces and the uid of a process with those required. It asks the host's kernel, because a sandbox may lie. */
export function inspectOutside({ pid, uid, info, readLink = readlinkSync }: InspectedProcess): Outside {
  const namespaces: Namespace[] = []
  const problems: string[] = []
  for (const name of NAMESPACES) {
    const host = attempt(() => readLink(`/proc/self/ns/${name}`))
    if (errnoOf(host.error) === 'ENOENT') continue // a kernel without this namespace has none to share
    const own = attempt(() => namespaceOf(pid, name, info, readLink))
    if (own.value === undefined || host.value === undefined) {
      problems.push(`its ${name} namespace cannot be read: ${messageOf(own.error ?? host.error)}`)
    } else if (own.value === host.value) {
      problems.push(`its ${name} namespace is the host's`)
    } else {
      namespaces.push(name)
    }
  }
  const found = attempt(() => /^Uid:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split(/\s+/))
  const uids = [...new Set(found.value ?? ['unknown'])]
  if (found.error !== undefined) problems.push(`its uid cannot be read: ${messageOf(found.error)}`)
  else if (uids.length !== 1 || uids[0] !== String(uid)) {
    problems.push(`it runs as uid ${uids.join(', ')} and must run as uid ${uid}`)
  }
  return { namespaces, problems }
}

/** The namespace as its link in /proc names it, for example `ipc:[4026531839]`. */
function namespaceOf(pid: number, name: Namespace, info: string, readLink: (path: string) => string): string {
  try {
    return readLink(`/proc/${pid}/ns/${name}`)
  } catch (error) {
    // Root without CAP_SYS_PTRACE (a container) may not read it; bubblewrap read it while it owned the process.
    if (errnoOf(error) !== 'EACCES' && errnoOf(error) !== 'EPERM') throw error
    if (name === 'user') return userNamespaceOf(pid, readLink)
    const id = new RegExp(`"${name}-namespace":\\s*(\\d+)`).exec(info)?.[1]
    if (id === undefined) throw error
    return `${name}:[${id}]`
  }
}

/** Names the user namespace, which bubblewrap does not report. If the uid map differs from the host's, it is another namespace. */
function userNamespaceOf(pid: number, readLink: (path: string) => string): string {
  const [own, host] = [pid, 'self'].map((process) => readFileSync(`/proc/${process}/uid_map`, 'utf8'))
  return own === host ? readLink('/proc/self/ns/user') : `user:[of ${pid}]`
}

function attempt<T>(act: () => T): { value?: T; error?: unknown } {
  try {
    return { value: act() }
  } catch (error) {
    return { error }
  }
}
