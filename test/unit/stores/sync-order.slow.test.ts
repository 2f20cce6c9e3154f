import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const DOOR = join(import.meta.dirname, '../../../src/artifacts/index.ts')
/** Each is done twice: the first time makes directories. */
const PROGRAM = `import { storeInDirectory } from ${JSON.stringify(DOOR)}
const store = storeInDirectory('store')
await store.put('a', 'hello')
const tag = await store.write('a', 'key', 'one', undefined)
await store.put('a', 'hello')
await store.write('a', 'key', 'two', tag)`

interface TraceEvent {
  readonly ph: string
  readonly ts: number
  readonly name: string
  readonly args: { readonly path?: string }
}

/** The steps that change a disk, in the order of Node's own trace. A synchronisation is that of the file that was opened last. */
function stepsOf(text: string): string[] {
  const { traceEvents } = JSON.parse(text) as { traceEvents: readonly TraceEvent[] }
  let opened = ''
  return traceEvents
    .filter(({ ph }) => ph === 'b' || ph === 'B')
    .toSorted((one, other) => one.ts - other.ts)
    .flatMap(({ name, args }) => {
      if (name === 'open') opened = (args.path ?? '').replace(/^.*?\/store\//, '').replace(/[^/]*-[^/]*-[^/]*$/, '*')
      if (name === 'fsync' || name === 'fdatasync') return [`sync ${opened}`]
      return /^(?:fs\.sync\.)?(?:write|rename|link|copyfile)$/.test(name) ? [name.replace('fs.sync.', '')] : []
    })
}

test('content is on the disk before it has its name, and the name before it is acknowledged', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-order-'))
  try {
    const flags = ['--trace-event-categories', 'node.fs.async,node.fs.sync', '--input-type=module']
    execFileSync(process.execPath, [...flags, '-e', PROGRAM], { cwd: directory })
    const steps = stepsOf(readFileSync(join(directory, 'node_trace.1.log'), 'utf8'))
    const last = steps.slice(steps.lastIndexOf('write', steps.lastIndexOf('write') - 1))
    expect(last).toEqual([
      'write',
      'sync tmp/*',
      'rename',
      'sync a/blobs/2c',
      'write',
      'sync tmp/*',
      'link',
      'sync a/records/key',
    ])
  } finally {
    rmSync(directory, { recursive: true })
  }
})
