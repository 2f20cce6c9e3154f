import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { storeInDirectory } from '../../../src/artifacts/index.ts'

const DOOR = join(import.meta.dirname, '../../../src/artifacts/index.ts')
const PROCESSES = 3
const WRITES = 500
/** Counts in a record, each time from the state that it read. */
const COUNT = `
const { storeInDirectory } = await import(process.argv[1])
const store = storeInDirectory(process.argv[2])
for (let done = 0; done < ${WRITES};) {
  const present = await store.read('a', 'count')
  if ((await store.write('a', 'count', String(Number(present?.text ?? 0) + 1), present?.tag)) !== undefined) done++
}`

test('of several processes that write one record, one succeeds each time', async () => {
  // In memory, where a write takes the least time: the processes meet as often as can be.
  const directory = mkdtempSync(join(process.platform === 'linux' ? '/dev/shm' : tmpdir(), 'store-'))
  try {
    const counting = Array.from({ length: PROCESSES }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', COUNT, DOOR, directory], { stdio: 'inherit' })
      return (await once(child, 'exit')) as [number | null]
    })
    expect((await Promise.all(counting)).map(([exitCode]) => exitCode)).toEqual(counting.map(() => 0))
    expect((await storeInDirectory(directory).read('a', 'count'))?.text).toBe(String(PROCESSES * WRITES))
  } finally {
    rmSync(directory, { recursive: true })
  }
})
