import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { errnoOf, messageOf, SandglassError, shortageError } from '../../errors/index.ts'

/** The options of the bubblewrap process. */
export interface LauncherOptions {
  readonly bwrap: string
  readonly args: readonly string[]
  /** The descriptor of the file to which it writes the description of the sandbox. */
  readonly info: number
  /** The uid to drop to first; undefined keeps the caller's. */
  readonly uid: number | undefined
}

/** Errors that mean that a file is missing or is not a program. */
const NO_PROGRAM: readonly (string | undefined)[] = ['ENOENT', 'EACCES', 'ENOEXEC', 'ENOTDIR', 'ELOOP']

/**
 * Starts bubblewrap. Its `exit` event cannot have fired when this resolves.
 * @throws SandglassError `bubblewrap_missing`, or `sandbox_setup_failed` when this host can start no process now.
 */
export async function spawnLauncher({
  bwrap,
  args,
  info,
  uid,
}: LauncherOptions): Promise<ChildProcessWithoutNullStreams> {
  try {
    const child = spawn(bwrap, args, {
      // Empty: /proc/1/environ would show the host's environment.
      env: {},
      cwd: '/',
      // A session of its own: the host handles Ctrl-C in the terminal.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', info, 'pipe'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    })
    await awaitSpawn(child)
    return child as ChildProcessWithoutNullStreams
  } catch (error) {
    const what = `${bwrap} cannot be started`
    const code = NO_PROGRAM.includes(errnoOf(error)) ? 'bubblewrap_missing' : 'sandbox_setup_failed'
    throw shortageError(error, what) ?? new SandglassError(code, `${what}: ${messageOf(error)}`, { cause: error })
  }
}

function awaitSpawn(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) => {
      // Node makes no streams if no descriptor is left.
      for (const stream of (child.stdio as ChildProcess['stdio'] | undefined) ?? []) stream?.destroy()
      reject(error)
    })
  })
}
