import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { programsNamed } from '../../src/support/index.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'

const START_MS = 20_000
/** Debian keeps the programs of the server off PATH. */
const DEBIAN = '/usr/lib/postgresql'
/** The server refuses to run as root; nobody owns nothing else. */
const NOBODY = 65_534

/** The directory of the server's programs on this machine; undefined without it (`apt-get install postgresql`). */
export function findPostgres(): string | undefined {
  const [found] = programsNamed('initdb')
  // It may be a link to one program among those that it needs.
  if (found !== undefined) return dirname(realpathSync(found))
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : []
  return versions.map((version) => join(DEBIAN, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')))
}

/** A server of its own on the loopback, with an empty database. */
export interface PostgresServer extends AsyncDisposable {
  readonly address: string
  /** Ends the server at once, as a crash does. */
  kill(): Promise<void>
  /** Starts it again on the same data. */
  start(): Promise<void>
}

/** Starts a server whose data goes with it. */
export async function startPostgres(bin: string): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), 'postgres-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(directory, NOBODY, NOBODY)
  const options = {
    cwd: directory,
    env: { LC_ALL: 'C' },
    stdio: 'ignore' as const,
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
  }
  execFileSync(join(bin, 'initdb'), ['-D', join(directory, 'data'), '-U', 'test', '--auth=trust', '--no-sync'], options)
  const port = await freePort()
  const args = ['-D', 'data', '-p', String(port), '-h', '127.0.0.1', '-k', '']
  const start = async (): Promise<ReturnType<typeof spawn>> => {
    const child = spawn(join(bin, 'postgres'), args, options)
    const problem = await eventually(() => {
      if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}`)
      try {
        execFileSync(join(bin, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)], options)
        return undefined
      } catch (error) {
        return String(error)
      }
    }, START_MS)
    if (problem === undefined) return child
    child.kill('SIGKILL')
    throw new Error(`postgres did not start: ${problem}`)
  }
  let child = await start()
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  return {
    address: `postgres://test@127.0.0.1:${port}/postgres`,
    kill: () => end('SIGQUIT'),
    async start() {
      child = await start()
    },
    async [Symbol.asyncDispose]() {
      await end('SIGQUIT')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
