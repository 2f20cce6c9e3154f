import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { promisify } from 'node:util'
import { programsNamed } from '../../support/index.ts'
import type { GuestCommand } from './guest-process.ts'

const run = promisify(execFile)
const TRY_MS = 10_000

/** What the kernel can hold an instance with: bubblewrap, or nothing and the reason. */
export type Box = { readonly bwrap: string } | { readonly bwrap?: undefined; readonly reason: string }

/** Looks for bubblewrap, and tries it with everything that an instance is started with. Never throws. */
export async function findBox(wanted: boolean): Promise<Box> {
  if (!wanted) return { reason: 'the option bubblewrap is false' }
  if (process.platform !== 'linux') return { reason: `bubblewrap is for Linux, this is ${process.platform}` }
  const [bwrap] = programsNamed('bwrap')
  if (bwrap === undefined) return { reason: 'bwrap is not on PATH' }
  const box = { bwrap: realpathSync(bwrap) }
  const { program, args } = boxed(box, { program: process.execPath, args: ['--version'], readable: [] })
  try {
    await run(program, args, { env: {}, cwd: '/', timeout: TRY_MS })
    return box
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string }
    return { reason: `bubblewrap does not work here: ${(stderr || message).trim().split('\n', 1)[0]}` }
  }
}

/** A program, and the files that it reads. */
export interface Contents extends GuestCommand {
  readonly readable: readonly string[]
}

/**
 * The command in a box: no network, no processes but its own, no file of the host but shared libraries, Node and what is
 * named, and nothing that can be written. In the process group of bubblewrap: whoever kills that leaves nothing.
 */
export function boxed(box: Box, { program, args, readable }: Contents): GuestCommand {
  if (box.bwrap === undefined) return { program, args }
  const measures = [
    ['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--cap-drop', 'ALL'],
    ['--uid', '1000', '--gid', '1000', '--hostname', BOX.hostname],
    ...LIBRARIES.map((path) => ['--ro-bind-try', path, path]),
    ...[program, ...readable].map((path) => ['--ro-bind', path, path]),
    ['--proc', '/proc', '--remount-ro', '/proc', '--remount-ro', '/', '--chdir', '/'],
  ]
  return { program: box.bwrap, args: [...measures.flat(), '--', program, ...args], isBoxed: true }
}

/** What an instance sees of its box. */
export const BOX = { hostname: 'sandbox' } as const

/** What Node is linked with. */
const LIBRARIES = [
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/usr/lib',
  '/usr/lib32',
  '/usr/lib64',
  '/usr/local/lib',
].concat('/etc/ld.so.cache')
