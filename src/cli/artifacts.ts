import { randomUUID } from 'node:crypto'
import { linkSync, renameSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import {
  type ArtifactInfo,
  type ArtifactService,
  type ArtifactSession,
  createArtifactService,
  parseArtifactRef,
  storeInDirectory,
} from '../artifacts/index.ts'
import { errnoOf, messageOf } from '../errors/index.ts'
import { countText, formatPath } from '../support/index.ts'
import type { Given } from './args.ts'
import { openInput } from './bounded-read.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import { whenText } from './figures.ts'
import { nameText } from './foreign-text.ts'
import { storeDirectory } from './store-directory.ts'
import { table } from './table.ts'

/** A call of `sandglass artifacts`. */
interface Call {
  readonly words: readonly string[]
  readonly given: Given
  readonly context: Context
  readonly artifacts: ArtifactService
  readonly session: ArtifactSession
}

const ACTIONS: Readonly<Record<string, (call: Call) => Promise<void>>> = { list, get, put, rm: remove }
/** The flags that only one action has. */
const OWN_FLAGS: Readonly<Record<string, string>> = { '--save': 'get', '--overwrite': 'get' }

/** `sandglass artifacts`: results in the store of this machine. Resolves to the exit code. */
export async function artifacts(given: Given, context: Context): Promise<number> {
  const [word, ...words] = given.positionals
  const names = Object.keys(ACTIONS).join(', ')
  if (word === undefined) throw makeUsageError(`artifacts needs one of ${names}; see sandglass artifacts --help`)
  const action = Object.hasOwn(ACTIONS, word) ? ACTIONS[word] : undefined
  if (action === undefined) throw makeUsageError(`artifacts has no ${JSON.stringify(word)}; it has ${names}`)
  for (const [flag, owner] of Object.entries(OWN_FLAGS)) {
    if (given.has(flag) && owner !== word)
      throw makeUsageError(`artifacts ${word} has no ${flag}; artifacts ${owner} has it`)
  }
  const sessionId = given.last('--session')
  const store = storeInDirectory(storeDirectory(given, context.env))
  const call = { words, given, context, session: sessionId === undefined ? {} : { sessionId } }
  await action({ ...call, artifacts: createArtifactService(store) })
  return EXIT.ok
}

/** The latest versions, or all versions of one. */
async function list(call: Call): Promise<void> {
  const { given, context, session } = call
  const [name] = takeWords(call, 0, 1, 'at most one NAME')
  const found = name === undefined ? await call.artifacts.list({ session }) : await versionsOf(name, call)
  if (given.has('--json')) await print(found, call)
  else await context.stdout.write(found.length === 0 ? 'no artifacts in this session\n' : tableOf(found))
}

async function versionsOf(name: string, { artifacts, session }: Call): Promise<readonly ArtifactInfo[]> {
  const found = await artifacts.versions(name, { session })
  if (found.length === 0) await artifacts.open(name, { session }) // throws, and says what is missing
  return found
}

async function get(call: Call): Promise<void> {
  const { given, context, artifacts, session } = call
  const [ref = ''] = takeWords(call, 1, 1, 'one NAME or NAME@VERSION')
  const target = given.last('--save')
  if (given.has('--overwrite') && target === undefined) throw makeUsageError('--overwrite needs --save FILE')
  const { name, version } = parseArtifactRef(ref)
  const opened = await artifacts.open(name, { session, version: version ?? undefined, signal: context.signal })
  if (target !== undefined) await save(opened.stream, target, given.has('--overwrite'))
  else if (!given.has('--json')) {
    if (context.stdout.isTerminal)
      throw makeUsageError('get prints no content to a terminal, which it could control: add --save FILE, or pipe it')
    for await (const piece of opened.stream) await context.stdout.write(piece)
  }
  if (given.has('--json')) await print([opened], call)
  else if (target !== undefined) await note(context, `${nameOf(opened)} is saved to ${target}`)
}

async function put(call: Call): Promise<void> {
  const { context, artifacts, session } = call
  const [file = '', given] = takeWords(call, 1, 2, 'FILE, and a NAME if it differs')
  if (file === '-' && given === undefined) throw makeUsageError('artifacts put - needs a NAME: artifacts put - NAME')
  const name = given ?? basename(resolve(file))
  const saved = await artifacts.save(name, contentOf(file, context.signal), { session, signal: context.signal })
  await show([saved], call)
}

async function remove(call: Call): Promise<void> {
  const { artifacts, session } = call
  const [ref = ''] = takeWords(call, 1, 1, 'one NAME or NAME@VERSION')
  const { name, version } = parseArtifactRef(ref)
  const options = { session, version: version ?? undefined }
  const removed = await artifacts.delete(name, options)
  if (removed.length === 0) await artifacts.open(name, options) // throws, and says what is missing
  await artifacts.prune()
  await show(removed, call)
}

async function show(found: readonly ArtifactInfo[], call: Call): Promise<void> {
  if (call.given.has('--json')) await print(found, call)
  else await call.context.stdout.write(tableOf(found))
}

/** One line of JSON for each (docs/cli.md). */
async function print(found: readonly ArtifactInfo[], { context }: Call): Promise<void> {
  for (const { name, version, mimeType, size, sha256 } of found) {
    await context.stdout.line({ v: 1, type: 'artifact', name, version, mime_type: mimeType, size, sha256 })
  }
}

function tableOf(found: readonly ArtifactInfo[]): string {
  const rows = found.map((one) => [
    nameText(nameOf(one)),
    `${countText(one.size)} B`,
    nameText(one.mimeType),
    whenText(one.savedAt),
    one.sha256.slice(0, 12),
  ])
  return table(['ARTIFACT', 'SIZE', 'TYPE', 'SAVED (UTC)', 'SHA-256'], rows)
}

function nameOf({ name, version }: ArtifactInfo): string {
  return `${name}@${version}`
}

/** Writes the content to a temporary file first, so that damaged content leaves nothing at its path. */
async function save(stream: ReadableStream<Uint8Array>, path: string, overwrite: boolean): Promise<void> {
  const aside = `${path}.${randomUUID()}`
  try {
    await using file = await openNew(aside, path)
    for await (const piece of stream) await file.writeFile(piece)
    if (overwrite) renameSync(aside, path)
    else linkSync(aside, path)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST')
      throw makeUsageError(`--save ${formatPath(path)}: it exists; name another file, or add --overwrite`, error)
    throw errnoOf(error) === undefined
      ? error
      : makeUsageError(`--save ${formatPath(path)}: it cannot be written: ${errnoOf(error)}`, error)
  } finally {
    rmSync(aside, { force: true })
  }
}

async function openNew(aside: string, path: string): ReturnType<typeof open> {
  if (path === '' || path.endsWith('/')) throw makeUsageError(`--save ${JSON.stringify(path)}: must name a file`)
  return open(aside, 'wx')
}

/** The content of a file, or of stdin for `-`. @throws UsageError if it cannot be read. */
async function* contentOf(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
  const what = path === '-' ? 'stdin' : formatPath(path)
  try {
    yield* openInput(path, what, signal) as AsyncIterable<Buffer>
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw makeUsageError(`${what}: it cannot be read: ${errnoOf(error) ?? messageOf(error)}`, error)
  }
}

function takeWords({ words, given }: Call, min: number, max: number, what: string): readonly string[] {
  if (words.length >= min && words.length <= max) return words
  throw makeUsageError(`artifacts ${given.positionals[0]} takes ${what}; see sandglass artifacts --help`)
}

function makeUsageError(message: string, cause?: unknown): UsageError {
  return new UsageError('invalid_request', message, { cause })
}
