import { lstatSync, readlinkSync } from 'node:fs'
import { INSIDE, scratchSizes, type SandboxLimits } from '../../sandbox/index.ts'

/** Everything that determines the inside of a sandbox. */
export interface Layout {
  readonly limits: SandboxLimits
  readonly harness: string
  readonly pythonPaths: readonly string[]
  readonly packages?: string | undefined
  readonly toolsDir?: string | undefined
  readonly inputsDir?: string | undefined
}

/** Numbers of the descriptors that bubblewrap inherits. */
export const FD = { args: 3, info: 4, block: 5 } as const

/** The arguments of bubblewrap without the command, one measure per line (docs/sandbox-local.md explains each). */
export function bwrapArgs(layout: Layout): string[] {
  const sizes = scratchSizes(layout.limits.diskBytes)
  const measures = [
    ['--unshare-all', '--unshare-user', '--disable-userns'],
    ['--as-pid-1', '--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    ['--uid', '1000', '--gid', '1000', '--hostname', 'sandbox'],
    bindReadOnly('/usr'),
    ...SYSTEM_DIRECTORIES.map(mountSystemDirectory),
    ...layout.pythonPaths.filter((path) => !/^\/usr(\/|$)/.test(path)).map((path) => bindReadOnly(path)),
    ...['/etc/ld.so.cache', '/etc/localtime', '/etc/fonts'].map((path) => ['--ro-bind-try', path, path]),
    ...ETC.map((name) => bindReadOnly(`${layout.harness}/etc/${name}`, `/etc/${name}`)),
    ['--proc', '/proc'],
    bindReadOnly('/proc/sys'),
    ['--dev', '/dev', ...mountTmpfs('/dev/shm', sizes.shm, '1777'), '--remount-ro', '/dev'],
    mountTmpfs('/tmp', sizes.tmp, '1777'),
    mountTmpfs('/var/tmp', sizes.varTmp, '1777'),
    mountTmpfs(INSIDE.workspace, sizes.workspace, '0755'),
    bindReadOnly(layout.harness, INSIDE.harness),
    layout.packages === undefined ? [] : bindReadOnly(layout.packages, INSIDE.packages),
    layout.toolsDir === undefined ? [] : bindReadOnly(layout.toolsDir, INSIDE.tools),
    layout.inputsDir === undefined ? [] : bindReadOnly(layout.inputsDir, INSIDE.inputs),
    ['--remount-ro', '/', '--chdir', INSIDE.workspace],
    ['--info-fd', String(FD.info), '--block-fd', String(FD.block)],
  ]
  return measures.flat()
}

const SYSTEM_DIRECTORIES = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
const ETC = ['passwd', 'group', 'hosts', 'nsswitch.conf']

function bindReadOnly(source: string, inside = source): string[] {
  return ['--ro-bind', source, inside]
}

function mountTmpfs(path: string, size: number, mode: string): string[] {
  return ['--perms', mode, '--size', String(size), '--tmpfs', path]
}

/** `/bin` and its like are links into /usr on a merged system, directories elsewhere, or missing. */
function mountSystemDirectory(path: string): string[] {
  try {
    return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
  } catch {
    return []
  }
}
