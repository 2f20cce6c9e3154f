import { ok, strictEqual } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { SandglassError } from '../../../src/errors/index.ts'
import { StoredTrees } from '../../../src/persistence/index.ts'
import { readRecord, writeRecord } from '../../../src/persistence/record.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import { type Store, storeInMemory } from '../../../src/stores/index.ts'
import type { Random } from '../../../test/support/random.ts'
import type { Fields } from '../corpus.ts'
import type { CaseMaker, FuzzCase } from '../fuzz-case.ts'
import { Hang } from '../hang.ts'

const ID = 'restored'
const SETTLE_MS = 30_000
/** Entries that contradict each other: links to everywhere, and files below paths that are not directories. */
const LINKS = [
  '/etc',
  '/',
  '..',
  '../../tmp',
  '/tmp',
  'd',
  'l',
  '/proc/self/fd/3',
  '/inputs',
  '/workspace/../etc/passwd',
]
const BELOW = ['l/x', 'l/passwd', 'f/x', 'd/l/x', 'l', 'f', 'd', 'd/l', 'x']
/** Lists everything that a sandbox can write outside the workspace. */
const LOOK = `import os
emit_result(sorted(os.path.join(d, n) for top in ('/tmp', '/var/tmp', '/dev/shm', '/inputs', '/etc') if os.path.isdir(top)
    for d, ds, fs in os.walk(top) for n in ds + fs))`

/** A tree written by an attacker is restored only inside the workspace, or refused with an error code. */
export function restoreCases(sg: Sandglass): CaseMaker {
  let outside: Promise<unknown> | undefined
  return (random) => restoreCase(sg, () => (outside ??= lookOutside(sg)), random)
}

function restoreCase(sg: Sandglass, outside: () => Promise<unknown>, random: Random): FuzzCase {
  const content = Buffer.from('restored')
  const sha256 = createHash('sha256').update(content).digest('hex')
  const kinds: readonly ((path: string) => Fields)[] = [
    (path) => ({
      kind: 'file',
      path,
      mode: random.pick([0o644, 0o777, 0]),
      size: random.pick([8, 8, 0, 2 ** 40]),
      sha256,
    }),
    (path) => ({ kind: 'link', path, target: random.pick(LINKS) }),
    (path) => ({ kind: 'directory', path, mode: random.pick([0o755, 0o000]) }),
  ]
  const entries = new Map<string, Fields>()
  for (let count = random.between(2, 6); count > 0; count -= 1) {
    const path = random.pick(BELOW)
    entries.set(path, random.pick(kinds)(path))
  }
  const manifest = Buffer.from([...entries.values()].map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  return {
    property: 'a hostile tree is restored in the workspace alone, or refused by name',
    pieces: [manifest],
    async check() {
      const store = await storeWith(manifest, content)
      const opening = sg.workspace({ persist: ID, store })
      const opened = await settled(opening.catch((error: unknown) => error))
      if (opened instanceof SandglassError) return
      if (opened instanceof Error) throw opened
      await using workspace = opened as Awaited<typeof opening>
      const { finalData, status } = await workspace.run(LOOK)
      strictEqual(status, 'completed')
      strictEqual(
        JSON.stringify(finalData),
        JSON.stringify(await outside()),
        'a file outside the workspace was written',
      )
      for await (const { path, kind, size } of workspace.list('', { hidden: true })) {
        const entry = entries.get(path)
        const isParent = [...entries.keys()].some((other) => other.startsWith(`${path}/`))
        ok(entry?.['kind'] === kind || (kind === 'directory' && isParent), `${path} is a ${kind}`)
        if (kind === 'file') strictEqual(size, content.length)
      }
    },
  }
}

async function lookOutside(sg: Sandglass): Promise<unknown> {
  await using workspace = await sg.workspace()
  return (await workspace.run(LOOK)).finalData
}

async function storeWith(manifest: Buffer, content: Buffer): Promise<Store> {
  const store = storeInMemory()
  const trees = new StoredTrees(store, ID)
  await trees.put(content)
  const { sha256 } = await trees.put(manifest)
  const { record, tag } = await readRecord(store, ID)
  const tree = { sha256, files: 1, bytes: 1, at: new Date(0).toISOString() }
  await writeRecord(store, { ...record, tree }, tag)
  return store
}

async function settled<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Hang(`the workspace did not open within ${SETTLE_MS} ms`)), SETTLE_MS)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
