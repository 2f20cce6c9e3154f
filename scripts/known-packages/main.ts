// Writes data/known-packages.json.gz, the published table of well-known packages and their modules.
//
//   npm run known-packages -- [--top FILE] [--limit N]
//
// The list of the most downloaded packages comes from hugovk.github.io/top-pypi-packages, or from a file with its form or
// with {"downloaded_timestamp": seconds, "packages": [names]}. The modules of each come from the list of files at the end
// of its newest wheel on PyPI. Results are kept in the temporary directory, so that a second call continues.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { normalName } from '../../src/environments/requirement.ts'
import { namesInArchive } from './archive.ts'
import { modulesOf } from './modules.ts'

const TOP = 'https://hugovk.github.io/top-pypi-packages/top-pypi-packages.min.json'
const PARALLEL = 24
/** Packages for one module. */
const MAX_PACKAGES = 4
/** A name with at least this many packages below it is a namespace. */
const MIN_BELOW = 5

const { values } = parseArgs({ options: { top: { type: 'string' }, limit: { type: 'string', default: '15000' } } })
const { date, names } = await readTop(values.top, Number(values.limit))
const kept = join(tmpdir(), 'sandglass-known-packages')
mkdirSync(kept, { recursive: true })

const found: (readonly string[])[] = []
let done = 0
let failed = 0
await Promise.all(Array.from({ length: PARALLEL }, worker))
process.stderr.write('\n')
writeTable()

async function worker(): Promise<void> {
  for (;;) {
    const at = done
    const name = names[at]
    if (name === undefined) return
    done += 1
    found[at] = await modulesOfPackage(name).catch((error: unknown) => {
      failed += 1
      if (process.env['DEBUG'] !== undefined) console.error(name, error)
      return []
    })
    if (done % 50 === 0)
      process.stderr.write(`\r${done} of ${names.length} packages, ${failed} without a wheel or an answer`)
  }
}

async function modulesOfPackage(name: string): Promise<readonly string[]> {
  const path = join(kept, `${name}.json`)
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as readonly string[]
  } catch {
    // not asked yet
  }
  const response = await fetch(`https://pypi.org/simple/${name}/`, {
    headers: { accept: 'application/vnd.pypi.simple.v1+json' },
  })
  if (!response.ok) throw new Error(`PyPI answered ${response.status}`)
  const { files } = (await response.json()) as { files: readonly { filename: string; url: string; yanked?: unknown }[] }
  // PyPI lists the oldest first.
  const wheels = files.filter(
    ({ filename, yanked }) =>
      filename.endsWith('.whl') && yanked !== true && !/-\d[^-]*(?:a|b|rc|dev)\d/.test(filename),
  )
  const wheel = wheels.findLast(({ filename }) => /-none-any|manylinux.*x86_64/.test(filename)) ?? wheels.at(-1)
  if (wheel === undefined) throw new Error('it has no wheel')
  const modules = modulesOf(await namesInArchive(wheel.url))
  writeFileSync(path, JSON.stringify(modules))
  return modules
}

async function readTop(path: string | undefined, limit: number): Promise<{ date: string; names: string[] }> {
  const text = path === undefined ? await (await fetch(TOP)).text() : readFileSync(path, 'utf8')
  const data = JSON.parse(text) as {
    last_update?: string
    rows?: readonly { project: string }[]
    downloaded_timestamp?: number
    packages?: readonly string[]
  }
  const listed = data.rows?.map(({ project }) => project) ?? data.packages ?? []
  const day = data.last_update ?? new Date((data.downloaded_timestamp ?? 0) * 1000).toISOString()
  return { date: day.slice(0, 10), names: [...new Set(listed.slice(0, limit).map(normalName))] }
}

function writeTable(): void {
  const own = JSON.parse(
    execFileSync('python3', ['-c', 'import json, sys; print(json.dumps(sorted(sys.stdlib_module_names)))'], {
      encoding: 'utf8',
    }),
  ) as string[]
  const standard = new Set(own)
  const imports: Record<string, number[]> = {}
  for (const [at, modules] of found.entries()) {
    for (const module of modules) {
      if (standard.has(module.split('.', 1)[0] ?? '')) continue
      const packages = (imports[module] ??= [])
      if (packages.length < MAX_PACKAGES) packages.push(at)
    }
  }
  for (const name of namespaces(Object.keys(imports))) delete imports[name]
  const sorted = Object.fromEntries(Object.entries(imports).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const table = gzipSync(JSON.stringify({ date, packages: names, imports: sorted }), { level: 9 })
  mkdirSync('data', { recursive: true })
  writeFileSync('data/known-packages.json.gz', table)
  const count = Object.keys(sorted).length
  console.log(
    `${names.length} packages and ${count} modules of ${date} in ${table.length} bytes; ${failed} packages without a wheel or an answer`,
  )
}

/** Namespaces that many packages share, such as `google`: the name alone does not identify a package. */
function namespaces(modules: readonly string[]): string[] {
  const count = new Map<string, number>()
  for (const [top, ...rest] of modules.map((module) => module.split('.'))) {
    if (top !== undefined && rest.length > 0) count.set(top, (count.get(top) ?? 0) + 1)
  }
  return [...count].flatMap(([name, below]) => (below >= MIN_BELOW ? [name] : []))
}
