import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, resolve } from 'node:path'
import { promisify } from 'node:util'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import { INSIDE } from '../../sandbox/index.ts'
import { isProgram, programsNamed, truncate } from '../../support/index.ts'
import { canReach } from './reach.ts'

const run = promisify(execFile)

/** A Python that the sandbox can use. */
export interface FoundPython {
  /** The real program, shims resolved. */
  readonly path: string
  /** For example `3.11.2`. */
  readonly version: string
  /** The paths that must be mounted in a sandbox: the program, the standard library and shared libraries, and nothing else. */
  readonly needed: readonly string[]
  /** The Pythons earlier on `PATH`, each with the reason why it was passed over. */
  readonly passedOver: readonly string[]
}

/** The output of {@link DESCRIBE}. */
interface Description {
  readonly version: string
  readonly path: string
  /** Its standard library, then the shared libraries that it loads from outside of the system's directories, under each of their names. */
  readonly needed: readonly string[]
}

// The extension modules are imported so that their libraries appear among the mapped files: conda keeps them among many others.
// No JSON, because every start of an engine waits for this, and the module json takes two fifths of it.
const DESCRIBE = `
import os, sys, sysconfig
path = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
stdlib = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
libraries = []
if not all(name.startswith("/usr/") for name in [path] + stdlib):
    import importlib
    dynload = os.path.join(stdlib[1], "lib-dynload")
    for name in sorted(os.listdir(dynload)) if os.path.isdir(dynload) else []:
        if not name.startswith(("_test", "_ctypes_test", "_xx", "xx")):
            try:
                importlib.import_module(name.split(".")[0])
            except Exception:
                pass
    places = [sysconfig.get_config_var("LIBDIR") or "/", os.path.join(sys.base_prefix, "lib")]
    with open("/proc/self/maps") as maps:
        mapped = {line.split(None, 5)[5].strip() for line in maps if ".so" in line and "/" in line}
    for file in mapped:
        own = os.path.dirname(file)
        if file.startswith(("/usr/", "/lib")) or not os.path.isfile(file):
            continue
        for place in {own} | {place for place in places if os.path.realpath(place) == own}:
            names = [os.path.join(place, name) for name in os.listdir(place)]
            libraries += [name for name in names if os.path.realpath(name) == file]
version = ".".join(map(str, sys.version_info[:3]))
sys.stdout.buffer.write(b"\\0".join(map(os.fsencode, [version, path] + stdlib + libraries)))
`

/**
 * Finds the requested Python, else the first on `PATH` or in the usual places that is at least 3.10 and that
 * `uid` can reach.
 * @throws SandglassError `python_missing` or `python_unreachable`, naming every candidate; `sandbox_setup_failed` when
 * the host lacks the resources to try them.
 */
export async function findPython(wanted: string | undefined, uid: number): Promise<FoundPython> {
  const candidates = wanted === undefined ? programsNamed('python3', ['/usr/bin', '/usr/local/bin']) : [resolve(wanted)]
  const passedOver: string[] = []
  let unreachable = false
  for (const candidate of candidates) {
    try {
      // A link to a Python is that Python. What another link leads to may depend on the link's name.
      const target = realpathSync(candidate)
      const program = /^python[\d.]*$/.test(basename(target)) ? target : candidate
      const first = await describe(program)
      const [major = 0, minor = 0] = first.version.split('.').map(Number)
      if (major !== 3 || minor < 10) {
        passedOver.push(`${candidate} is ${first.version}, older than 3.10`)
        continue
      }
      // The sandbox starts the real program, which may find its library elsewhere than a shim does.
      const isKnown = first.path === program || !canReach(first.path, uid)
      const { version, path, needed: all } = isKnown ? first : await describe(first.path)
      const needed = keepOutermost([path, ...all])
      const unsuitable = needed.map(findBindProblem).find((problem) => problem !== undefined)
      const closed = needed.find((one) => !canReach(one, uid))
      if (closed !== undefined) {
        unreachable = true
        const what = closed === path ? '' : `needs ${closed}, which `
        passedOver.push(`${candidate} (${path}) ${what}is in a directory that uid ${uid} cannot enter`)
      } else if (unsuitable !== undefined) {
        unreachable = true
        passedOver.push(`${candidate} (${path}) needs ${unsuitable}`)
      } else {
        return { path, version, needed, passedOver }
      }
    } catch (error) {
      const shortage = shortageError(error, `${candidate} cannot be started`)
      if (shortage !== undefined) throw shortage
      passedOver.push(`${candidate} does not run: ${messageOf(error).split('\n', 1)[0]}`)
    }
  }
  const found = passedOver.length === 0 ? 'python3 is not on PATH' : passedOver.join('; ')
  throw unreachable
    ? new SandglassError(
        'python_unreachable',
        `a sandbox cannot reach any Python: ${found}; install Python below /usr or /opt, or set the option python`,
      )
    : new SandglassError(
        'python_missing',
        `Python 3.10 or later was not found: ${found}; install python3, or set the option python`,
      )
}

async function describe(program: string): Promise<Description> {
  const { stdout } = await run(program, ['-I', '-c', DESCRIBE], {
    timeout: 20_000,
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/' },
  })
  const [version = '', path, ...needed] = stdout.split('\0')
  if (!/^\d+\.\d+\.\d+$/.test(version) || path === undefined || needed.length === 0)
    throw new Error(`it answered ${JSON.stringify(truncate(stdout, 200))}`)
  return { version, path, needed }
}

/** Directories with private data. A sandbox in which one of them or a parent is mounted exposes more than a Python. */
const PRIVATE = ['/home', '/root', '/etc', '/var', '/run']
/** Paths where every sandbox has its own mounts, which would hide a bound directory. */
const COVERED = ['/dev', '/proc', INSIDE.harness, INSIDE.packages, INSIDE.tools, ...INSIDE.scratch]

/** Returns the reason why a path must not or cannot be mounted in a sandbox, or undefined. */
function findBindProblem(path: string): string | undefined {
  const homes = [homedir(), process.env['HOME'] ?? ''].filter((home) => home.startsWith('/'))
  const shown = [path, realpathSync(path)]
  const home = [...PRIVATE, ...homes, ...homes.filter((one) => existsSync(one)).map((one) => realpathSync(one))].find(
    (one) => shown.some((place) => isWithin(one, place)),
  )
  if (home !== undefined) return `${path}, which would show ${home} to scripts`
  const covered = COVERED.find((one) => isWithin(path, one))
  return covered === undefined ? undefined : `${path}, which the sandbox's own ${covered} hides`
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`)
}

/** Sorts paths and removes those inside another one. */
function keepOutermost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)].toSorted()
  return all.filter((path) => !all.some((other) => other !== path && isWithin(path, other)))
}

/** @throws SandglassError `bubblewrap_missing`. */
export function findBwrap(wanted: string | undefined): string {
  const found = (wanted === undefined ? programsNamed('bwrap') : [wanted]).find(isProgram)
  if (found !== undefined) return realpathSync(found)
  throw new SandglassError(
    'bubblewrap_missing',
    `${wanted ?? 'bwrap'} was not found or cannot be executed; install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap; Alpine: apk add bubblewrap)`,
  )
}
