import { lstatSync, readlinkSync } from 'node:fs'
import { INSIDE, scratchSizes, type SandboxLimits } from '../../sandbox/index.ts'

/** Everything that decides what the inside of a sandbox looks like. */
export interface Layout {
  readonly limits: SandboxLimits
  readonly harness: string
  readonly pythonPaths: readonly string[]
  readonly packages?: string | undefined
  readonly toolsDir?: string | undefined
  readonly inputsDir?: string | undefined
}

/** Descriptors of the launch, counted as bubblewrap sees them. */
export const FD = { args: 3, info: 4, block: 5 } as const

/** The arguments of bubblewrap without the command, one measure a line (docs/sandbox-local.md explains each). */
export function bwrapArgs(layout: Layout): string[] {
  const sizes = scratchSizes(layout.limits.diskBytes)
  const measures = [
    ['--unshare-all', '--unshare-user', '--disable-userns'],
    ['--as-pid-1', '--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    ['--uid', '1000', '--gid', '1000', '--hostname', 'sandbox'],
    readOnly('/usr'),
    ...SYSTEM_DIRECTORIES.map(systemDirectory),
    ...layout.pythonPaths.filter((path) => !/^\/usr(\/|$)/.test(path)).map((path) => readOnly(path)),
    ...['/etc/ld.so.cache', '/etc/localtime', '/etc/fonts'].map((path) => ['--ro-bind-try', path, path]),
    ...ETC.map((name) => readOnly(`${layout.harness}/etc/${name}`, `/etc/${name}`)),
    ['--proc', '/proc'],
    readOnly('/proc/sys'),
    ['--dev', '/dev', ...tmpfs('/dev/shm', sizes.shm, '1777'), '--remount-ro', '/dev'],
    tmpfs('/tmp', sizes.tmp, '1777'),
    tmpfs('/var/tmp', sizes.varTmp, '1777'),
    tmpfs(INSIDE.workspace, sizes.workspace, '0755'),
    readOnly(layout.harness, INSIDE.harness),
    layout.packages === undefined ? [] : readOnly(layout.packages, INSIDE.packages),
    layout.toolsDir === undefined ? [] : readOnly(layout.toolsDir, INSIDE.tools),
    layout.inputsDir === undefined ? [] : readOnly(layout.inputsDir, INSIDE.inputs),
    ['--remount-ro', '/', '--chdir', INSIDE.workspace],
    ['--info-fd', String(FD.info), '--block-fd', String(FD.block)],
  ]
  return measures.flat()
}

const SYSTEM_DIRECTORIES = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
const ETC = ['passwd', 'group', 'hosts', 'nsswitch.conf']

function readOnly(source: string, inside = source): string[] {
  return ['--ro-bind', source, inside]
}

function tmpfs(path: string, size: number, mode: string): string[] {
  return ['--perms', mode, '--size', String(size), '--tmpfs', path]
}

/** `/bin` and its like are links into /usr on a merged system, directories elsewhere, or missing. */
function systemDirectory(path: string): string[] {
  try {
    return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
  } catch {
    return []
  }
}
