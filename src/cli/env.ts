import type { SandglassError } from '../errors/index.ts'
import { Environments, type EnvironmentSummary } from '../environments/index.ts'
import type { Given } from './args.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import { plural } from './figures.ts'
import { InstallLine } from './install-line.ts'
import { parseSandboxFlags } from './options.ts'
import { startSandglass } from './start.ts'
import { table } from './table.ts'

/** The exit code if another process uses the environment. */
const IN_USE = 9
const MAX_NAMED = 6
const MAX_DIFFERENCES = 20

const ACTIONS: Readonly<Record<string, (words: readonly string[], given: Given, context: Context) => Promise<number>>> =
  {
    list: (words, given, context) => list(refuseWords('list', words), given, context),
    add,
    update,
    rm: remove,
    prune: (words, given, context) => prune(refuseWords('prune', words), given, context),
    verify,
  }

/** `sandglass env`: the environments in the cache. Resolves to the exit code. */
export async function env(given: Given, context: Context): Promise<number> {
  const [word, ...words] = given.positionals
  const names = Object.keys(ACTIONS).join(', ')
  if (word === undefined) throw makeUsageError(`env needs one of ${names}; see sandglass env --help`)
  const action = Object.hasOwn(ACTIONS, word) ? ACTIONS[word] : undefined
  if (action === undefined) throw makeUsageError(`env has no ${JSON.stringify(word)}; it has ${names}`)
  return action(words, given, context)
}

async function list(_: void, given: Given, context: Context): Promise<number> {
  const found = await new Environments().list()
  const newestFirst = found.toReversed()
  if (given.has('--json')) for (const one of newestFirst) await context.stdout.line(environmentLine(one))
  else await context.stdout.write(newestFirst.length === 0 ? 'the cache has no environments\n' : tableOf(newestFirst))
  return EXIT.ok
}

async function add(words: readonly string[], given: Given, context: Context): Promise<number> {
  if (words.length === 0) throw makeUsageError('env add needs packages, such as "pandas>=2"; see sandglass env --help')
  const { options } = parseSandboxFlags(given, context.engines)
  await using installing = new InstallLine(context)
  const sandglass = await startSandglass({ ...options, poolSize: 0, maxOverflow: 1 }, context)
  let key: string
  try {
    key = (await sandglass.prepare(words, { signal: context.signal, onProgress: installing.onProgress })).key
  } finally {
    await sandglass.close()
  }
  return await show([key], given, context)
}

async function update(words: readonly string[], given: Given, context: Context): Promise<number> {
  const environments = new Environments()
  const before = await find(takeOneWord('update', words), environments)
  await using installing = new InstallLine(context)
  let keys: readonly string[]
  try {
    const updated = await environments.update(before.key, { signal: context.signal, onProgress: installing.onProgress })
    if (updated === undefined) throw makeUnknownError(before.key)
    keys = updated.map(({ environment }) => environment.key)
  } finally {
    environments.close()
  }
  if (!given.has('--json') && keys.join() === before.key) await note(context, 'nothing is newer')
  return await show(keys, given, context)
}

async function remove(words: readonly string[], given: Given, context: Context): Promise<number> {
  const environments = new Environments()
  const found = await find(takeOneWord('rm', words), environments)
  const downloads = await environments.downloadBytes()
  if (await environments.remove(found.key)) {
    if (given.has('--json')) await context.stdout.line(environmentLine(found))
    else await context.stdout.write(`removed ${found.key}, and downloads: ${bytesText(found.bytes + downloads)}\n`)
    return EXIT.ok
  }
  await note(context, `the environment ${found.key} is in use: it was not removed`)
  return IN_USE
}

async function prune(_: void, given: Given, context: Context): Promise<number> {
  const environments = new Environments()
  const before = await environments.list()
  const downloads = await environments.downloadBytes()
  const removed = new Set(await environments.prune())
  const gone = before.filter(({ key }) => removed.has(key))
  if (given.has('--json')) for (const one of gone) await context.stdout.line(environmentLine(one))
  else {
    const bytes = gone.reduce((sum, one) => sum + one.bytes, downloads)
    await context.stdout.write(
      `removed ${plural(gone.length, 'environment')} that nobody uses, and downloads: ${bytesText(bytes)}\n`,
    )
  }
  return EXIT.ok
}

async function verify(words: readonly string[], given: Given, context: Context): Promise<number> {
  const environments = new Environments()
  const [key, ...others] = words
  if (others.length > 0) throw makeUsageError('env verify takes one KEY')
  const chosen = key === undefined ? await environments.list() : [await find(key, environments)]
  let isSound = true
  for (const one of chosen) {
    const differences = (await environments.verify(one.key)) ?? []
    if (differences.length > 0) isSound = false
    if (given.has('--json')) {
      const listed = differences.slice(0, MAX_DIFFERENCES)
      await context.stdout.line({ ...environmentLine(one), ok: differences.length === 0, differences: listed })
    } else {
      const shown = differences.slice(0, MAX_DIFFERENCES).map(({ path, problem }) => `  ${problem} ${path}\n`)
      const more = differences.length > MAX_DIFFERENCES ? `  and ${differences.length - MAX_DIFFERENCES} more\n` : ''
      const verdict = differences.length === 0 ? 'as installed' : differText(differences.length)
      await context.stdout.write(`${one.key}: ${verdict}\n${shown.join('')}${more}`)
    }
  }
  return isSound ? EXIT.ok : 1
}

function differText(files: number): string {
  return `${plural(files, 'file')} ${files === 1 ? 'differs' : 'differ'}`
}

async function show(keys: readonly string[], given: Given, context: Context): Promise<number> {
  const environments = new Environments()
  const found: EnvironmentSummary[] = []
  for (const key of keys) found.push(await find(key, environments))
  if (given.has('--json')) for (const one of found) await context.stdout.line(environmentLine(one))
  else await context.stdout.write(tableOf(found))
  return EXIT.ok
}

/** The environment of a key, or of the beginning of one. @throws UsageError. */
async function find(start: string, environments: Environments): Promise<EnvironmentSummary> {
  const found = (await environments.list()).filter(({ key }) => key.startsWith(start))
  const [first, ...others] = found
  if (first === undefined) throw makeUnknownError(start)
  if (others.length === 0) return first
  throw makeUsageError(`${JSON.stringify(start)} is the beginning of ${found.length} keys; write more of it`)
}

/** An environment as one line of JSON (docs/cli.md). */
function environmentLine(one: EnvironmentSummary): Record<string, unknown> {
  const { key, python, packages, bytes, lastUsed, inUse } = one
  return { v: 1, type: 'environment', key, python, packages, bytes, last_used: lastUsed.toISOString(), in_use: inUse }
}

function tableOf(environments: readonly EnvironmentSummary[]): string {
  const rows = environments.map(({ key, python, packages, bytes, lastUsed, inUse }) => {
    const names = Object.entries(packages).map(([name, version]) => `${name} ${version}`)
    const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : ''
    const used = inUse ? 'now' : lastUsed.toISOString().slice(0, 16).replace('T', ' ')
    return [key, python, bytesText(bytes), used, `${names.slice(0, MAX_NAMED).join(', ')}${more}`]
  })
  return table(['KEY', 'PYTHON', 'SIZE', 'USED', 'PACKAGES'], rows)
}

function bytesText(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
}

function takeOneWord(action: string, words: readonly string[]): string {
  const [key, ...others] = words
  if (key === undefined || others.length > 0)
    throw makeUsageError(`env ${action} takes one KEY; sandglass env list shows them`)
  return key
}

function refuseWords(action: string, [word]: readonly string[]): void {
  if (word !== undefined) throw makeUsageError(`env ${action} takes no ${JSON.stringify(word)}`)
}

function makeUnknownError(key: string): SandglassError {
  return makeUsageError(`the cache has no environment ${JSON.stringify(key)}; sandglass env list shows them`)
}

function makeUsageError(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
