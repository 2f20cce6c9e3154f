import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { FilesInput } from '../../../src/index.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { watchAllGrowth } from '../../support/memory.ts'

const MiB = 1024 * 1024
const DIGEST = `import hashlib
with open("in/large", "rb") as file: emit_result(hashlib.file_digest(file, "sha256").hexdigest())`

/** Tests of files of the host for runs without a workspace. @param largeMiB the size of a large one. */
export function hostFileTests(at: { readonly sg: Sandglass }, largeMiB: number): void {
  const host = mkdtempSync(join(tmpdir(), 'sandglass-host-'))
  afterAll(() => rmSync(host, { recursive: true, force: true }))
  const hostFile = (name: string, content: string): string => {
    writeFileSync(join(host, name), content)
    return join(host, name)
  }
  async function* stream(): AsyncGenerator<string> {
    yield 'in '
    await Promise.resolve()
    yield 'pieces'
  }

  test('a run finds files of the host, streams and bytes; the events of a stream of events tell the same', async () => {
    const script = `from pathlib import Path
emit_result([Path(p).read_text() for p in ("a", "in/b", "c", "d")])`
    const path = hostFile('b', 'from the host')
    const files = (): FilesInput => ({ a: 'text', 'in/b': { path }, c: { stream: stream() }, d: Buffer.from('bytes') })
    const expected = ['text', 'from the host', 'in pieces', 'bytes']
    expect((await at.sg.run(script, { files: files() })).finalData).toEqual(expected)
    const events = await Array.fromAsync(at.sg.stream(script, { files: files() }))
    expect(events.at(-1)).toMatchObject({ type: 'result', result: { finalData: expected } })
  }, 60_000)

  test('a file that cannot be read costs no sandbox, and no call of a model', async () => {
    const files = { a: { path: join(host, 'missing') } }
    const checkouts = (): number => {
      const { hits, misses, waits } = at.sg.stats()
      return hits + misses + waits
    }
    const before = checkouts()
    const error = {
      code: 'invalid_request',
      message: expect.stringContaining('files["a"].path: it cannot be read: ENOENT') as string,
    }
    await expect(at.sg.run('1', { files })).rejects.toMatchObject(error)
    const model = scriptedModel('emit_result(1)')
    await expect(at.sg.solve('x', { model, files })).rejects.toMatchObject(error)
    await expect(at.sg.asTool({ files }).execute({ script: '1' })).rejects.toMatchObject(error)
    expect([checkouts(), model.prompts]).toEqual([before, []])
  }, 60_000)

  test('more files come back where collectLimits of a run, a task or an agent allows it', async () => {
    const script = `for n in range(105):
    with open(f"{n:03}.txt", "w") as file: file.write("x" * (5_000_000 if n == 7 else 1))
emit_result(1)`
    const collect = ['*.txt']
    const within = await at.sg.run(script, { collect })
    expect([within.files.length, within.limitsHit]).toEqual([100, ['max_file_bytes', 'max_files']])
    const collectLimits = { maxFiles: 105, maxFileBytes: 5_000_000 }
    const { files, limitsHit } = await at.sg.run(script, { collect, collectLimits })
    expect([files.length, files[7]?.content.length, limitsHit]).toEqual([105, 5_000_000, []])
    const solved = await at.sg.solve('x', { model: scriptedModel(script), policy: 'off', collect, collectLimits })
    expect(solved.files.length).toBe(105)
    let given = 0
    const agent = at.sg.asTool({
      collect,
      collectLimits,
      policy: 'off',
      onFiles: (found) => void (given = found.length),
    })
    await agent.execute({ script })
    expect(given).toBe(105)
    const wrong = { collect, collectLimits: { maxFile: 1 } as never }
    await expect(at.sg.run('1', wrong)).rejects.toThrow(TypeError)
  }, 60_000)

  test('each script of a task and each call of a tool finds the file of the host; a stream would serve one of them', async () => {
    const files = { 'in/b': { path: hostFile('b', 'again') } }
    const read = 'emit_result(open("in/b").read())'
    const model = scriptedModel('raise ValueError', read)
    expect((await at.sg.solve('Read', { model, files })).finalData).toBe('again')
    const tool = at.sg.asTool({ files })
    for (let n = 0; n < 2; n += 1) expect((await tool.execute({ script: read })).result).toBe('again')
    const once = { a: { stream: stream() } }
    expect(() => at.sg.asTool({ files: once })).toThrow('files["a"].stream: a stream can be read only once')
    await expect(at.sg.solve('x', { model, files: once })).rejects.toThrow(
      'files["a"].stream: a stream can be read only once',
    )
  }, 60_000)

  test(`a file of ${largeMiB} MiB arrives whole, and costs the host no memory of its size`, async () => {
    const path = join(host, 'large')
    writeFileSync(path, 'begin')
    truncateSync(path, largeMiB * MiB)
    const hash = createHash('sha256').update('begin')
    hash.update(Buffer.alloc(largeMiB * MiB - 5))
    const limits = { memoryBytes: 4 * largeMiB * MiB, diskBytes: (largeMiB + 1) * MiB, executionTimeoutSec: 60 }
    await at.sg.run('1', { limits }) // the sandbox is there
    const digest = hash.digest('hex')
    const grewMiB = await leastOf(2, 64, async () => {
      const growth = watchAllGrowth()
      const { finalData, error } = await at.sg.run(DIGEST, { files: { 'in/large': { path } }, limits })
      expect([error, finalData]).toEqual([null, digest])
      return growth()
    })
    expect(grewMiB).toBeLessThan(64)
  }, 120_000)
}
