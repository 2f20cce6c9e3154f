import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { SandglassError } from '../../../src/errors/index.ts'
import { type EntryState, parseManifest } from '../../../src/persistence/manifest.ts'
import type { Random } from '../../../test/support/random.ts'
import type { Fields } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { cut, mutatedBytes } from '../mutate-bytes.ts'
import { mutatedJson } from '../mutate-json.ts'

const SHA = 'a'.repeat(64)
const MAX_ENTRIES = 40
/** Valid entries, including links that an attacker with access to the store could write. */
export const ENTRIES: readonly Fields[] = [
  { kind: 'directory', path: 'd', mode: 0o755 },
  { kind: 'file', path: 'd/a', mode: 0o644, size: 1, sha256: SHA },
  { kind: 'file', path: 'ä "q"\n', mode: 0, size: 0, sha256: SHA },
  { kind: 'link', path: 'l', target: 'd/a' },
  { kind: 'link', path: 'out', target: '/etc/passwd' },
  { kind: 'link', path: 'up', target: '../../..' },
]
const PATHS = [
  '..',
  '../a',
  '/etc/a',
  'd/../../a',
  'd//a',
  './a',
  'a/',
  '',
  '.',
  'd/.',
  'a\0b',
  'd',
  'l/x',
  'a'.repeat(5000),
]

/** Makes a manifest with some hostile lines. */
export function hostileManifest(random: Random): Buffer {
  const lines = Array.from({ length: random.between(1, 8) }, () => {
    let entry = random.pick(ENTRIES)
    if (random.oneIn(2)) entry = { ...entry, path: random.pick(PATHS) }
    if (random.oneIn(6)) entry = { ...entry, size: random.pick([-1, 1.5, 2 ** 53, 1e308, '1']) }
    return `${mutatedJson(entry, random, random.below(3))}\n`
  })
  if (random.oneIn(20))
    lines.push(...Array.from({ length: MAX_ENTRIES + 1 }, (_, at) => `{"kind":"directory","path":"n${at}","mode":0}\n`))
  const bytes = Buffer.from(lines.join(''))
  return random.oneIn(3) ? mutatedBytes(bytes, Buffer.from(lines.toReversed().join('')), random) : bytes
}

/** A hostile manifest is refused with an error code, or each of its entries is inside the workspace and occurs once. */
export function manifestCase(random: Random): FuzzCase {
  const pieces = cut(hostileManifest(random), random)
  return {
    property: 'a hostile manifest is refused by name, or names paths of the workspace alone',
    pieces,
    async check() {
      const found = await parseManifest(streamed(pieces), 'the store', MAX_ENTRIES).catch((error: unknown) => error)
      deepStrictEqual(Object.keys(Object.prototype), [])
      if (found instanceof SandglassError) return strictEqual(found.code, 'store_damaged')
      if (!(found instanceof Map)) throw found
      checkEntries(found as ReadonlyMap<string, EntryState>, Buffer.concat(pieces))
    },
  }
}

function checkEntries(found: ReadonlyMap<string, EntryState>, bytes: Buffer): void {
  const lines = bytes.toString('utf8').split('\n').slice(0, -1)
  strictEqual(found.size, lines.length, 'a line is missing')
  ok(found.size <= MAX_ENTRIES, `${found.size} entries, ${MAX_ENTRIES} are allowed`)
  for (const [at, [path, entry]] of [...found].entries()) {
    deepStrictEqual({ ...entry }, { ...(JSON.parse(lines[at] ?? '') as object) })
    strictEqual(entry.path, path)
    ok(path !== '' && !path.includes('\0'), `an empty path, or one with a NUL: ${JSON.stringify(path)}`)
    for (const part of path.split('/'))
      ok(!['', '.', '..'].includes(part), `a path that leads out of the workspace: ${path}`)
    if (entry.kind !== 'link') ok(entry.mode >= 0 && entry.mode <= 0o777)
  }
}

async function* streamed(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces
}
