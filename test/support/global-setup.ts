import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { findPython } from '../../src/engines/local/programs.ts'
import { makeRunDirectory, removeAbandoned } from './abandoned-runs.ts'
import { findGvisor, requireDockerEngine } from './docker-engine.ts'
import { requireLocalEngine } from './local-engine.ts'

const WRITE_GUEST = join(import.meta.dirname, 'engines/pyodide/write-guest.main.ts')
/** A uid that stands for those of sandboxes, which are nobody's on the machine. */
const SOMEBODY = 65_534

/**
 * Makes the directory that the test files of one run share (run-directory.ts), and removes it at the end. A vitest inside
 * a test has a directory of its own, because it may test another tree. Then it probes the engines of the rung, and the files
 * read what it found. A vitest that tests local only says so by SANDGLASS_TEST_ENGINES.
 * @throws Error if an engine that SANDGLASS_TEST_REQUIRE names is not usable.
 */
export async function setup({ vitest }: TestProject): Promise<() => void> {
  removeAbandoned(tmpdir())
  const directory = makeRunDirectory(tmpdir())
  chmodSync(directory, 0o711) // tests start the command line as another user
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  process.env['SANDGLASS_TEST_RUN'] = directory
  // Tests start the command line and small hosts a hundred times: Node caches their compiled code.
  process.env['NODE_COMPILE_CACHE'] ??= join(directory, 'compiled')
  // In a process of its own, because Node warns of what strips types.
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', WRITE_GUEST, directory])
  await preferPython(join(directory, 'bin'))
  const rungs = new Set(vitest.projects.map(({ name }) => name))
  if (['waiting', 'library', 'sandbox', 'daemon', 'paired', 'campaign'].some((rung) => rungs.has(rung)))
    await requireLocalEngine()
  if (process.env['SANDGLASS_TEST_ENGINES'] === 'local') return remove
  if (['daemon', 'paired', 'campaign'].some((rung) => rungs.has(rung))) {
    await requireDockerEngine()
    await findGvisor()
  }
  return remove
}

/**
 * Puts the Python of sandboxes first on PATH. Every engine and every command tries the programs there in order, and a pyenv in
 * root's home, which sandboxes cannot enter, takes a quarter of a second each time until it is passed over.
 */
async function preferPython(bin: string): Promise<void> {
  const user = process.getuid?.() ?? 0
  const found = await findPython(undefined, user === 0 ? SOMEBODY : user).catch(() => undefined)
  if (found === undefined) return // the probe of the engine gives the reason
  mkdirSync(bin)
  symlinkSync(found.path, join(bin, 'python3'))
  process.env['PATH'] = `${bin}:${process.env['PATH'] ?? ''}`
}
