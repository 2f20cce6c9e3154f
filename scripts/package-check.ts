/** Builds, packs and inspects the tarball as npm would publish it: `npm run package:check`. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runsInstalled } from './installed-run.ts'

/** Files that the package needs. Detects an incomplete `files` list. */
const REQUIRED_FILES = [
  'LICENSE',
  'README.md',
  'dist/cli/main.js',
  'dist/index.js',
  'dist/index.d.ts',
  'dist/engine.js',
  'dist/workspace-api/index.js',
  'dist/testing/index.js',
  'dist/artifacts/index.js',
  'dist/code-agent/index.js',
  'dist/review.js',
  'harness/sandglass_harness/start.py',
  'harness/etc/passwd',
]
/** Files that must not be in the package. */
const UNWANTED_FILES = [/^src\//, /(^|\/)tests?\//, /\.test\./, /__pycache__/, /\.tsbuildinfo$/]
const SHEBANG = '#!/usr/bin/env node\n'

interface PackReport {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

function main(folder: string): boolean {
  if (!run('npm', ['run', '--silent', 'build'])) return false
  const report = pack(folder)
  const tarball = join(folder, report.filename)
  const problems = [...contentProblems(report.files.map((file) => file.path)), ...entryProblems()]
  for (const problem of problems) console.error(`package: ${problem}`)
  const publint = run('publint', ['run', tarball, '--strict'])
  const types = run('attw', [tarball, '--profile', 'esm-only', '--no-emoji', '--format', 'ascii'])
  return problems.length === 0 && publint && types && runsInstalled(tarball, folder)
}

function pack(folder: string): PackReport {
  const args = ['pack', '--silent', '--json', '--ignore-scripts', '--pack-destination', folder]
  const packed = spawnSync('npm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (packed.status !== 0) throw new Error(`npm pack ended with ${packed.status}`)
  const report = (JSON.parse(packed.stdout) as readonly PackReport[])[0]
  if (report === undefined) throw new Error('npm pack reported no package')
  return report
}

function contentProblems(paths: readonly string[]): string[] {
  const missing = REQUIRED_FILES.filter((path) => !paths.includes(path)).map(
    (path) => `${path} is missing from the tarball`,
  )
  const unwanted = paths.filter((path) => UNWANTED_FILES.some((pattern) => pattern.test(path)))
  return [...missing, ...unwanted.map((path) => `${path} does not belong in the tarball`)]
}

function entryProblems(): string[] {
  const path = 'dist/cli/main.js'
  try {
    return readFileSync(path, 'utf8').startsWith(SHEBANG) ? [] : [`${path} does not start with ${SHEBANG.trim()}`]
  } catch {
    return [`${path} was not built`]
  }
}

function run(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
}

const folder = mkdtempSync(join(tmpdir(), 'sandglass-pack-'))
try {
  process.exitCode = main(folder) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
