import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { workspaceWith } from '../../support/many-files.ts'

const DOOR = join(import.meta.dirname, '../../support/many-files.ts')
/** Enough for the thread that writes small files, and for several batches of it. */
const FILES = new Map(Array.from({ length: 1200 }, (_, n) => [`lots/${n % 7}/${n}`, n === 5 ? '' : `content of ${n}`]))
const OPTIONS = { maxFiles: FILES.size }

let host: string
beforeEach(() => {
  host = mkdtempSync(join(tmpdir(), 'sandglass-save-'))
})
afterEach(() => rmSync(host, { recursive: true, force: true }))

/** The content of each file below the directory. */
function savedFiles(): Map<string, string> {
  const names = readdirSync(host, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    names.map(({ parentPath, name }) => {
      const path = join(parentPath, name)
      return [path.slice(host.length + 1), readFileSync(path, 'utf8')]
    }),
  )
}

/** Ends the next thread of this process before it has loaded its module. */
async function endNextThread(): Promise<number> {
  const [worker] = (await once(process, 'worker')) as [Worker]
  return worker.terminate()
}

test.each([false, true])('many files are saved by a thread, overwrite: %s', async (overwrite) => {
  const { ws } = workspaceWith(FILES)
  const started = once(process, 'worker')
  expect(await ws.save('**', host, { ...OPTIONS, overwrite })).toHaveLength(FILES.size)
  await started
  expect(savedFiles()).toEqual(FILES)
  await ws.close()
})

test.each([false, true])('many files are saved if the thread ends early, overwrite: %s', async (overwrite) => {
  const { ws } = workspaceWith(FILES)
  const ended = endNextThread()
  expect(await ws.save('**', host, { ...OPTIONS, overwrite })).toHaveLength(FILES.size)
  await ended
  expect(savedFiles()).toEqual(FILES)
  await ws.close()
})

test('without the thread, a file that cannot be written is named, and no part of it stays', async () => {
  const fake = workspaceWith(FILES)
  const { answer, ws } = fake
  fake.answer = (said, of) => {
    // Nothing is in the way when the paths are looked at.
    if (said.type === 'files_read') mkdirSync(join(host, 'lots/3/10'), { recursive: true })
    answer(said, of)
  }
  const ended = endNextThread()
  await expect(ws.save('**', host, { ...OPTIONS, overwrite: true })).rejects.toMatchObject({
    code: 'path_refused',
    message: expect.stringContaining('lots/3/10') as string,
  })
  await ended
  expect(readdirSync(host)).toEqual(['lots'])
  await ws.close()
})

test('many files are saved by a process that may start no thread', () => {
  const code = `import { workspaceWith } from ${JSON.stringify(DOOR)}
const { ws } = workspaceWith(new Map(${JSON.stringify([...FILES])}))
const saved = await ws.save('**', ${JSON.stringify(host)}, ${JSON.stringify(OPTIONS)})
console.log(saved.length)
await ws.close()`
  const flags = ['--permission', '--allow-fs-read=*', '--allow-fs-write=*', '--input-type=module']
  const options = { encoding: 'utf8', timeout: 20_000 } as const
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', code], options)
  expect({ stdout, stderr }).toMatchObject({ stdout: `${FILES.size}\n` })
  expect(savedFiles()).toEqual(FILES)
})
