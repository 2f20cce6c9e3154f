import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { WorkspaceOnLocal } from './workspace-on-local.ts'

/** The rules for files of a workspace that hold on every engine, without programs. */
export function testFileRules(at: Pick<WorkspaceOnLocal, 'sg' | 'ws'>): void {
  const host = mkdtempSync(join(tmpdir(), 'sandglass-file-rules-'))
  afterAll(() => rmSync(host, { recursive: true, force: true }))

  test('WS-04: files come back as they were put, whatever they are made of', async () => {
    const large = Buffer.alloc(3_000_001, 'large ')
    writeFileSync(join(host, 'large'), large)
    async function* stream(): AsyncGenerator<string> {
      yield 'in '
      await Promise.resolve()
      yield 'pieces'
    }
    await at.ws.put({
      'put/text.txt': 'text ü',
      'put/bytes': Uint8Array.of(0, 255, 10),
      'put/empty': '',
      'put/tool.sh': { content: '#!/bin/sh\necho ran\n', mode: 0o755 },
      'put/deep/er/large': { path: join(host, 'large') },
      'put/stream': { stream: stream() },
      'put/-rf': 'a leading dash',
      'put/line\nbreak': 'odd',
    })
    const text = async (path: string): Promise<string> => Buffer.from(await at.ws.get(path)).toString()
    expect(await text('put/text.txt')).toBe('text ü')
    expect([...(await at.ws.get('put/bytes'))]).toEqual([0, 255, 10])
    expect(await text('put/empty')).toBe('')
    expect(await text('put/stream')).toBe('in pieces')
    expect(await text('put/-rf')).toBe('a leading dash')
    expect(await text('put/line\nbreak')).toBe('odd')
    expect(large.equals(await at.ws.get('put/deep/er/large'))).toBe(true)
    expect(await at.ws.stat('put/tool.sh')).toMatchObject({ kind: 'file', mode: 0o755 })
    const seen = 'import os; emit_result([oct(os.stat("put/tool.sh").st_mode), open("put/line\\nbreak").read()])'
    expect((await at.ws.run(seen)).finalData).toEqual(['0o100755', 'odd'])
    expect(await at.ws.stat('put/text.txt')).toMatchObject({ kind: 'file', size: 7, mode: 0o644 })
  })

  // WS-04
  test('a path that leaves the workspace is refused, also through a link, and nothing is written outside', async () => {
    await at.ws.run('import os; os.symlink("/tmp", "outside"); os.makedirs("real"); os.symlink("real", "inside")')
    for (const path of ['', '/etc/x', '../x', 'a/../../x', 'a//b', './a', 'nul\0'])
      await expect(at.ws.put({ [path]: 'x' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(at.ws.put({ 'outside/x': 'x' })).rejects.toMatchObject({ code: 'path_refused' })
    await expect(at.ws.get('outside/x')).rejects.toMatchObject({ code: expect.stringMatching(/^path_/) as string })
    await expect(at.ws.makeDirectory('outside/dir')).rejects.toMatchObject({ code: 'path_refused' })
    await expect(at.ws.remove('outside/x')).rejects.toMatchObject({ code: expect.stringMatching(/^path_/) as string })
    await at.ws.put({ 'real/x': 'x' })
    expect(Buffer.from(await at.ws.get('inside/x')).toString()).toBe('x')
    expect((await at.ws.run('import os; emit_result(os.listdir("/tmp"))')).finalData).toEqual([])
  })

  test('WS-07: what a link leads to and what is no file is not read', async () => {
    await at.ws.run('import os; os.symlink("/etc/passwd", "pw"); os.makedirs("dir")')
    for (const path of ['pw', 'dir']) await expect(at.ws.get(path)).rejects.toMatchObject({ code: 'path_refused' })
    await expect(at.ws.get('not-there')).rejects.toMatchObject({ code: 'path_not_found' })
    expect((await at.ws.stat('pw')).kind).toBe('link')
  })

  test('a file that is larger than the caller wants is an error, and nothing else ends', async () => {
    await at.ws.put({ 'size.bin': new Uint8Array(2000) })
    await expect(at.ws.get('size.bin', { maxBytes: 1999 })).rejects.toMatchObject({ code: 'too_large' })
    expect(await at.ws.get('size.bin', { maxBytes: 2000 })).toHaveLength(2000)
  })

  test('WS-07: a large file is read piece by piece, and the reader may leave', async () => {
    const make =
      'import os, hashlib; b = os.urandom(20_000_000); open("random", "wb").write(b); emit_result(hashlib.sha256(b).hexdigest())'
    const { finalData: sha256 } = await at.ws.run(make)
    const hash = createHash('sha256')
    for await (const piece of at.ws.read('random')) hash.update(piece)
    expect(hash.digest('hex')).toBe(sha256)
    expect((await at.ws.digest('random')).sha256).toBe(sha256)
    for await (const piece of at.ws.read('random')) {
      expect(piece.length).toBeGreaterThan(0)
      break
    }
    expect((await at.ws.stat('random')).size).toBe(20_000_000)
    await at.ws.remove('random')
  })

  test('a directory is listed, made, digested and removed', async () => {
    await at.ws.makeDirectory('tree/sub')
    await at.ws.put({ 'tree/b.txt': 'b', 'tree/a.txt': 'a', 'tree/sub/c.md': 'c', 'tree/.hidden': 'h' })
    const paths = async (options = {}): Promise<string[]> =>
      (await Array.fromAsync(at.ws.list('tree', options))).map(({ path }) => path)
    expect(await paths()).toEqual(['a.txt', 'b.txt', 'sub', 'sub/c.md'])
    expect(await paths({ patterns: '**/*.md' })).toEqual(['sub/c.md'])
    expect((await paths({ hidden: true })).toSorted()).toEqual(['.hidden', 'a.txt', 'b.txt', 'sub', 'sub/c.md'])
    await expect(paths({ maxEntries: 2 })).rejects.toMatchObject({ code: 'too_large' })
    const of = (text: string): string => createHash('sha256').update(text).digest('hex')
    const parts = Object.entries({ '.hidden': 'h', 'a.txt': 'a', 'b.txt': 'b', 'sub/c.md': 'c' })
    const sha256 = of(parts.map(([path, text]) => `file\0${path}\0${of(text)}\0`).join(''))
    expect(await at.ws.digest('tree')).toEqual({ sha256, files: 4, bytes: 4 })
    await expect(at.ws.remove('tree')).rejects.toMatchObject({ code: 'path_refused' })
    await at.ws.remove('tree', { recursive: true })
    await expect(at.ws.stat('tree')).rejects.toMatchObject({ code: 'path_not_found' })
  })

  test('WS-07, WS-08: collected files are described first, and their bytes come when asked for', async () => {
    await at.ws.run(
      'import os\nos.makedirs("out/deep")\nfor i in range(5): open(f"out/deep/{i}.txt", "w").write(str(i) * i)',
    )
    const found = []
    for await (const file of at.ws.collect('out/**'))
      found.push([file.path, file.size, Buffer.from(await file.bytes()).toString()])
    expect(found).toEqual([
      ['out/deep/0.txt', 0, ''],
      ['out/deep/1.txt', 1, '1'],
      ['out/deep/2.txt', 2, '22'],
      ['out/deep/3.txt', 3, '333'],
      ['out/deep/4.txt', 4, '4444'],
    ])
    await expect(Array.fromAsync(at.ws.collect('out/**', { maxFiles: 4 }))).rejects.toMatchObject({ code: 'too_large' })
    const [file] = await Array.fromAsync(at.ws.collect('out/deep/4.txt', { maxFileBytes: 3 }))
    await expect(file?.bytes()).rejects.toMatchObject({ code: 'too_large' })
  })

  test('files of a run are put before it, and stay', async () => {
    const { finalData } = await at.ws.run('emit_result(open("given.txt").read())', { files: { 'given.txt': 'given' } })
    expect(finalData).toBe('given')
    expect(Buffer.from(await at.ws.get('given.txt')).toString()).toBe('given')
  })

  test('files are there from the start of a workspace', async () => {
    await using ws = await at.sg.workspace({ files: { 'in/first.txt': 'first' } })
    expect((await ws.run('emit_result(open("in/first.txt").read())')).finalData).toBe('first')
  })

  test('a stream that fails leaves no file behind', async () => {
    async function* failing(): AsyncGenerator<string> {
      yield 'half'
      await Promise.resolve()
      throw new Error('the source broke')
    }
    await expect(at.ws.put({ 'half.txt': { stream: failing() } })).rejects.toThrow('the source broke')
    await expect(at.ws.stat('half.txt')).rejects.toMatchObject({ code: 'path_not_found' })
    await expect(at.ws.put({ x: { path: join(host, 'not-there') } })).rejects.toMatchObject({ code: 'invalid_request' })
  })
}
