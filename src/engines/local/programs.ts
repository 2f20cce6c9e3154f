import { execFile } from 'node:child_process'
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { canReach } from './reach.ts'

const run = promisify(execFile)

/** A Python that the sandbox can use. */
export interface FoundPython {
  /** The real program, shims resolved. */
  readonly path: string
  /** For example `3.11.2`. */
  readonly version: string
  /** Directories that hold it and its standard library. */
  readonly prefixes: readonly string[]
  /** Pythons that come earlier on `PATH` and why they were passed over. */
  readonly passedOver: readonly string[]
}

const DESCRIBE =
  'import json,os,sys,sysconfig;print(json.dumps([list(sys.version_info[:3]),os.path.realpath(sys.executable),sys.base_prefix,sys.base_exec_prefix,sysconfig.get_path("stdlib")]))'

/**
 * The Python that was asked for, else the first on `PATH` or in the usual places that is at least 3.10 and that
 * `uid` can reach.
 * @throws SandglassError `python_missing` or `python_unreachable`, naming what was looked at.
 */
export async function findPython(wanted: string | undefined, uid: number): Promise<FoundPython> {
  const candidates = wanted === undefined ? onPath('python3', ['/usr/bin', '/usr/local/bin']) : [resolve(wanted)]
  const passedOver: string[] = []
  let unreachable = false
  for (const candidate of candidates) {
    try {
      const [version, path, ...prefixes] = await describe(candidate)
      const [major = 0, minor = 0] = version
      if (major !== 3 || minor < 10) {
        passedOver.push(`${candidate} is ${version.join('.')}, older than 3.10`)
      } else if (!canReach(path, uid) || !prefixes.every((prefix) => canReach(prefix, uid))) {
        unreachable = true
        passedOver.push(`${candidate} (${path}) lies in a directory that uid ${uid} cannot enter`)
      } else {
        return {
          path,
          version: version.join('.'),
          prefixes: [...new Set([dirname(dirname(path)), ...prefixes])],
          passedOver,
        }
      }
    } catch (error) {
      passedOver.push(`${candidate} does not run: ${messageOf(error).split('\n', 1)[0]}`)
    }
  }
  const found = passedOver.length === 0 ? 'there is none on PATH' : passedOver.join('; ')
  throw unreachable
    ? new SandglassError(
        'python_unreachable',
        `no Python that a sandbox can reach: ${found}; install one below /usr or /opt, or name one with the option python`,
      )
    : new SandglassError(
        'python_missing',
        `no Python >= 3.10: ${found}; install python3, or name one with the option python`,
      )
}

async function describe(program: string): Promise<[number[], string, ...string[]]> {
  const { stdout } = await run(program, ['-I', '-c', DESCRIBE], {
    timeout: 20_000,
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/' },
  })
  return JSON.parse(stdout) as [number[], string, ...string[]]
}

/** @throws SandglassError `bubblewrap_missing`. */
export function findBwrap(wanted: string | undefined): string {
  const found = (wanted === undefined ? onPath('bwrap', ['/usr/bin', '/usr/local/bin']) : [wanted]).find(isProgram)
  if (found !== undefined) return realpathSync(found)
  throw new SandglassError(
    'bubblewrap_missing',
    `${wanted ?? 'bwrap'} was not found or cannot be executed; install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap; Alpine: apk add bubblewrap)`,
  )
}

/** Every program of a name on PATH; `extra` directories count only when PATH has none. */
function onPath(name: string, extra: readonly string[]): string[] {
  const directories = (process.env['PATH'] ?? '').split(delimiter).filter((directory) => directory.startsWith('/'))
  const found = directories.map((directory) => join(directory, name)).filter(isProgram)
  const all =
    name === 'bwrap' ? found : [...found, ...extra.map((directory) => join(directory, name)).filter(isProgram)]
  return [...new Set(all)]
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
