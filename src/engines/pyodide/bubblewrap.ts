import { execFile } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { shortageError } from '../../errors/index.ts'
import { programsNamed } from '../../support/index.ts'
import type { GuestCommand } from './guest-process.ts'

const run = promisify(execFile)
const TRY_MS = 30_000

/** The isolation that the kernel gives an instance: bubblewrap, or none and the reason. */
export type Bubblewrap =
  | { readonly bwrap: string; readonly libraries: readonly string[] }
  | { readonly bwrap?: undefined; readonly reason: string }

/**
 * Looks for bubblewrap and tries it with the command of an instance, which only prints its version.
 * @throws SandglassError `sandbox_setup_failed` if the host is short of a resource.
 */
export async function findBubblewrap(wanted: boolean, instance: Contents): Promise<Bubblewrap> {
  if (!wanted) return { reason: 'the option bubblewrap is false' }
  if (process.platform !== 'linux') return { reason: `bubblewrap is for Linux, this is ${process.platform}` }
  const [found] = programsNamed('bwrap')
  if (found === undefined) return { reason: 'bwrap is not on PATH' }
  try {
    const bubblewrap = { bwrap: realpathSync(found), libraries: libraryDirectories() }
    const { program, args } = wrapInBubblewrap(bubblewrap, { ...instance, args: ['--version', ...instance.args] })
    await run(program, args, { env: {}, cwd: '/', timeout: TRY_MS })
    return bubblewrap
  } catch (error) {
    const shortage = shortageError(error, 'bubblewrap cannot be tried')
    if (shortage !== undefined) throw shortage // a shortage does not mean that bubblewrap is missing
    const { stderr, message } = error as { stderr?: string; message: string }
    return { reason: `bubblewrap does not work here: ${(stderr || message).trim().split('\n', 1)[0]}` }
  }
}

/** The directories of the shared libraries that Node has loaded, under the names that the loader uses. */
function libraryDirectories(): string[] {
  const maps = readFileSync('/proc/self/maps', 'utf8')
  const paths = [...maps.matchAll(/ (\/(?:usr\/|lib|nix\/store\/)\S*\.so\S*)$/gm)].map(([, path = '']) => dirname(path))
  const merged = paths.filter((path) => path.startsWith('/usr/')).map((path) => path.slice('/usr'.length))
  return [...new Set([...paths, ...merged, '/lib64', '/etc/ld.so.cache'])]
}

/** A program and the files that it reads. */
export interface Contents extends GuestCommand {
  readonly readable: readonly string[]
}

/**
 * The command that runs another one in bubblewrap: without a network, with its own processes only. It sees three parts of the
 * host's files, read-only: Node, the directories of Node's shared libraries, and the named paths. It is in the process group of
 * bubblewrap, which can be killed at once.
 */
export function wrapInBubblewrap(bubblewrap: Bubblewrap, { program, args, readable }: Contents): GuestCommand {
  if (bubblewrap.bwrap === undefined) return { program, args }
  const flags = [
    ['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--cap-drop', 'ALL'],
    ['--uid', '1000', '--gid', '1000', '--hostname', OBSERVED.hostname],
    ...bubblewrap.libraries.map((path) => ['--ro-bind-try', path, path]),
    ...[program, ...readable].map((path) => ['--ro-bind', path, path]),
    ['--proc', '/proc', '--remount-ro', '/proc', '--remount-ro', '/', '--chdir', '/'],
  ]
  return { program: bubblewrap.bwrap, args: [...flags.flat(), '--', program, ...args], isInBubblewrap: true }
}

/** Properties of bubblewrap that an instance can observe. */
export const OBSERVED = { hostname: 'sandbox' } as const
