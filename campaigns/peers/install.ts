import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const HERE = import.meta.dirname
/** Debian's Python, which the image has as well. */
const PYTHON = '/usr/bin/python3'

/** The places of the installed peers. */
export interface Installed {
  /** The Python of the virtual environment with the peers from PyPI. */
  readonly python: string
  /** The module of Anthropic's sandbox-runtime. */
  readonly srt: string
  /** A tree to copy onto the image, with the packages that smolagents' DockerExecutor needs. */
  readonly layer: string
  /** Versions by package. */
  readonly versions: Readonly<Record<string, string>>
}

/** Installs the pinned peers below a directory, once for the same pins. No file of them is in the repository's tree. */
export function install(cache: string): Installed {
  const pins = ['requirements.txt', 'image-requirements.txt', 'npm/package.json'].map((name) => join(HERE, name))
  const digest = createHash('sha256')
  for (const pin of pins) digest.update(readFileSync(pin))
  const root = join(cache, digest.digest('hex').slice(0, 12))
  const layer = join(root, 'layer')
  const python = join(root, 'venv/bin/python')
  if (!existsSync(join(root, 'complete'))) {
    mkdirSync(root, { recursive: true })
    must(PYTHON, '-m', 'venv', join(root, 'venv'))
    const pip = [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'] as const
    must(...pip, '-r', join(HERE, 'requirements.txt'))
    const packages = join(layer, 'usr/local/lib/python3.11/dist-packages')
    must(...pip, '--target', packages, '--upgrade', '-r', join(HERE, 'image-requirements.txt'))
    mkdirSync(join(layer, 'usr/bin'), { recursive: true })
    // llm-sandbox calls `python`, which Debian's image does not have.
    if (!existsSync(join(layer, 'usr/bin/python'))) symlinkSync('python3', join(layer, 'usr/bin/python'))
    cpSync(join(HERE, 'npm'), join(root, 'npm'), { recursive: true })
    must('npm', 'install', '--prefix', join(root, 'npm'), '--no-audit', '--no-fund', '--silent')
    writeFileSync(join(root, 'complete'), '')
  }
  return {
    python,
    srt: join(root, 'npm/node_modules/@anthropic-ai/sandbox-runtime/dist/index.js'),
    layer,
    versions: { ...pypiVersions(python), ...npmVersions(root) },
  }
}

function pypiVersions(python: string): Record<string, string> {
  const names = ['llm-sandbox', 'smolagents', 'pydantic-monty', 'jupyter-client', 'ipykernel', 'docker']
  const code = `import sys; from importlib.metadata import version
for name in sys.argv[1:]: print(name, version(name))`
  const { stdout } = spawnSync(python, ['-c', code, ...names], { encoding: 'utf8' })
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  )
}

function npmVersions(root: string): Record<string, string> {
  const name = '@anthropic-ai/sandbox-runtime'
  const text = readFileSync(join(root, 'npm/node_modules', name, 'package.json'), 'utf8')
  return { [name]: (JSON.parse(text) as { version: string }).version }
}

function must(program: string, ...args: readonly string[]): void {
  process.stderr.write(`${program} ${args.join(' ')}\n`)
  const { status, error } = spawnSync(program, args, { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}`)
}
