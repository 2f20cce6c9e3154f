import { execFile } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { shortageError } from '../../errors/index.ts'
import { programsNamed } from '../../support/index.ts'
import type { GuestCommand } from './guest-process.ts'

const run = promisify(execFile)
const TRY_MS = 30_000

/** What the kernel can hold an instance with: bubblewrap, or nothing and the reason. */
export type Box =
  | { readonly bwrap: string; readonly libraries: readonly string[] }
  | { readonly bwrap?: undefined; readonly reason: string }

/**
 * Looks for bubblewrap, and tries it with the command of an instance, which only says its version.
 * @throws SandglassError `sandbox_setup_failed` when the host is too short of something to try.
 */
export async function findBox(wanted: boolean, instance: Contents): Promise<Box> {
  if (!wanted) return { reason: 'the option bubblewrap is false' }
  if (process.platform !== 'linux') return { reason: `bubblewrap is for Linux, this is ${process.platform}` }
  const [found] = programsNamed('bwrap')
  if (found === undefined) return { reason: 'bwrap is not on PATH' }
  try {
    const box = { bwrap: realpathSync(found), libraries: libraryDirectories() }
    const { program, args } = boxed(box, { ...instance, args: ['--version', ...instance.args] })
    await run(program, args, { env: {}, cwd: '/', timeout: TRY_MS })
    return box
  } catch (error) {
    const shortage = shortageError(error, 'bubblewrap cannot be tried')
    if (shortage !== undefined) throw shortage // instances without a box are for hosts that can have none
    const { stderr, message } = error as { stderr?: string; message: string }
    return { reason: `bubblewrap does not work here: ${(stderr || message).trim().split('\n', 1)[0]}` }
  }
}

/** Where the shared libraries lie that Node has loaded, by the names under which the loader looks for them. */
function libraryDirectories(): string[] {
  const maps = readFileSync('/proc/self/maps', 'utf8')
  const paths = [...maps.matchAll(/ (\/(?:usr\/|lib|nix\/store\/)\S*\.so\S*)$/gm)].map(([, path = '']) => dirname(path))
  const merged = paths.filter((path) => path.startsWith('/usr/')).map((path) => path.slice('/usr'.length))
  return [...new Set([...paths, ...merged, '/lib64', '/etc/ld.so.cache'])]
}

/** A program, and the files that it reads. */
export interface Contents extends GuestCommand {
  readonly readable: readonly string[]
}

/**
 * The command in a box: no network, no processes but its own, no file of the host but the directories of Node's shared
 * libraries, Node and what is named, and nothing that can be written. In the process group of bubblewrap: whoever kills that leaves nothing.
 */
export function boxed(box: Box, { program, args, readable }: Contents): GuestCommand {
  if (box.bwrap === undefined) return { program, args }
  const measures = [
    ['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--cap-drop', 'ALL'],
    ['--uid', '1000', '--gid', '1000', '--hostname', BOX.hostname],
    ...box.libraries.map((path) => ['--ro-bind-try', path, path]),
    ...[program, ...readable].map((path) => ['--ro-bind', path, path]),
    ['--proc', '/proc', '--remount-ro', '/proc', '--remount-ro', '/', '--chdir', '/'],
  ]
  return { program: box.bwrap, args: [...measures.flat(), '--', program, ...args], isBoxed: true }
}

/** What an instance sees of its box. */
export const BOX = { hostname: 'sandbox' } as const
