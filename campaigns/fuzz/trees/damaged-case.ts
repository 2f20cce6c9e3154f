import { deepStrictEqual, ok } from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SandglassError } from '../../../src/errors/index.ts'
import { type EntryState, StoredTrees } from '../../../src/persistence/index.ts'
import { readRecord, writeRecord } from '../../../src/persistence/record.ts'
import { type Store, storeInDirectory } from '../../../src/stores/index.ts'
import type { Random } from '../../../test/support/random.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedBytes } from '../mutate-bytes.ts'

const ID = 'fuzzed'
/** The error codes for a damaged store. */
const CODES: readonly string[] = ['store_damaged', 'store_unusable']

/** A workspace in a directory, and every file of that directory. */
export interface StoredWorkspace extends Disposable {
  readonly directory: string
  readonly files: ReadonlyMap<string, Buffer>
  readonly contents: Readonly<Record<string, string>>
}

/** Stores a small workspace: empty, equal, nested and large enough files, a link and a directory. */
export async function storeWorkspace(): Promise<StoredWorkspace> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-fuzz-'))
  const store = storeInDirectory(directory)
  const trees = new StoredTrees(store, ID)
  const contents: Record<string, string> = { empty: '', 'd/a.txt': 'a', 'd/b.txt': 'a', rows: 'x,y\n1,2\n'.repeat(20) }
  const entries: EntryState[] = [{ kind: 'directory', path: 'd', mode: 0o755 }]
  for (const [path, text] of Object.entries(contents)) {
    const { sha256, size } = await trees.put(Buffer.from(text))
    entries.push({ kind: 'file', path, mode: 0o644, size, sha256 })
  }
  entries.push({ kind: 'link', path: 'l', target: 'rows' })
  const tree = await trees.save(entries, new Date(0))
  await writeRecord(store, { id: ID, generation: 1, owner: null, tree, checkpoints: [{ ...tree, id: 'c' }] }, undefined)
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8', withFileTypes: true })
  const paths = names.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  return {
    directory,
    files: new Map(paths.toSorted().map((path) => [path, readFileSync(path)])),
    contents,
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** One file of a store is damaged: the workspace is read unchanged, or refused with an error code. */
export function damagedCase(stored: StoredWorkspace, random: Random): FuzzCase {
  const [path, sound] = random.pick([...stored.files])
  let bytes = sound
  for (let times = random.between(1, 3); times > 0; times -= 1)
    bytes = mutatedBytes(bytes, random.pick([...stored.files.values()]), random)
  return {
    property: 'a workspace whose store is damaged is read as it was, or refused by name',
    pieces: [bytes],
    check: () => checkDamage(stored, path, bytes),
  }
}

/** @throws Error if the store, with these bytes in one file, yields neither the original workspace nor a coded error. */
export async function checkDamage(stored: StoredWorkspace, path: string, bytes: Uint8Array): Promise<void> {
  writeFileSync(path, bytes)
  try {
    const read = await readAll(storeInDirectory(stored.directory)).catch((error: unknown) => error)
    if (read instanceof SandglassError) ok(CODES.includes(read.code), `unexpected code ${read.code}: ${read.message}`)
    else if (read instanceof Error) throw read
    // A damaged record can describe another valid state, such as one without a tree.
    else if (read !== undefined) deepStrictEqual(read, stored.contents)
  } finally {
    writeFileSync(path, stored.files.get(path) ?? '')
  }
}

/** The content of every file of the workspace; undefined if it has no state. */
async function readAll(store: Store): Promise<Record<string, string> | undefined> {
  const { record } = await readRecord(store, ID)
  if (record.tree === null) return undefined
  const trees = new StoredTrees(store, ID)
  const contents: Record<string, string> = {}
  for (const entry of (await trees.load(record.tree)).values()) {
    if (entry.kind === 'file')
      contents[entry.path] = Buffer.concat(await Array.fromAsync(await trees.open(entry))).toString()
  }
  return contents
}
