import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { SkippedFile } from '../../../src/workspace/index.ts'
import { inWorkspace } from '../../support/workspace-on-local.ts'

const host = mkdtempSync(join(tmpdir(), 'sandglass-files-'))
afterAll(() => rmSync(host, { recursive: true, force: true }))

await inWorkspace((at) => {
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
    expect((await at.ws.exec('put/tool.sh')).stdout).toBe('ran\n')
    expect(await at.ws.stat('put/text.txt')).toMatchObject({ kind: 'file', size: 7, mode: 0o644 })
  })

  test('WS-04: a path that leaves the workspace is refused, also through a link, and nothing is written outside', async () => {
    await at.ws.exec('sh', ['-c', 'ln -sfn /tmp outside; mkdir -p real; ln -sfn real inside'])
    for (const path of ['', '/etc/x', '../x', 'a/../../x', 'a//b', './a', 'nul\0'])
      await expect(at.ws.put({ [path]: 'x' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(at.ws.put({ 'outside/x': 'x' })).rejects.toMatchObject({ code: 'path_refused' })
    await expect(at.ws.get('outside/x')).rejects.toMatchObject({ code: expect.stringMatching(/^path_/) as string })
    await expect(at.ws.makeDirectory('outside/dir')).rejects.toMatchObject({ code: 'path_refused' })
    await expect(at.ws.remove('outside/x')).rejects.toMatchObject({ code: expect.stringMatching(/^path_/) as string })
    expect((await at.ws.exec('sh', ['-c', 'ls /tmp | wc -l'])).stdout).toBe('0\n')
  })

  test('WS-07: what a link leads to and what is no file is not read', async () => {
    await at.ws.exec('sh', ['-c', 'ln -sfn /etc/passwd pw; mkfifo -m 644 fifo; mkdir -p dir'])
    for (const path of ['pw', 'fifo', 'dir'])
      await expect(at.ws.get(path)).rejects.toMatchObject({ code: 'path_refused' })
    await expect(at.ws.get('not-there')).rejects.toMatchObject({ code: 'path_not_found' })
    expect((await at.ws.stat('pw')).kind).toBe('link')
    expect((await at.ws.stat('fifo')).kind).toBe('other')
  })

  test('a file that is larger than the caller wants is an error, and nothing else ends', async () => {
    await at.ws.put({ 'size.bin': new Uint8Array(2000) })
    await expect(at.ws.get('size.bin', { maxBytes: 1999 })).rejects.toMatchObject({ code: 'too_large' })
    expect(await at.ws.get('size.bin', { maxBytes: 2000 })).toHaveLength(2000)
  })

  test('WS-07: a large file is read piece by piece, and the reader may leave', async () => {
    await at.ws.exec('sh', ['-c', 'head -c 20000000 /dev/urandom > random'])
    const hash = createHash('sha256')
    for await (const piece of at.ws.read('random')) hash.update(piece)
    expect(hash.digest('hex')).toBe((await at.ws.exec('sha256sum', ['random'])).stdout.slice(0, 64))
    for await (const piece of at.ws.read('random')) {
      expect(piece.length).toBeGreaterThan(0)
      break
    }
    expect((await at.ws.exec('echo', ['on'])).stdout).toBe('on\n')
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
    const { sha256, files } = await at.ws.digest('tree')
    expect([sha256.length, files]).toEqual([64, 4])
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

  test('WS-07: links that stay inside are collected as files; what is left out is told, and more than 100,000 may come', async () => {
    await at.ws.exec('sh', [
      '-c',
      'mkdir odd; cd odd; echo in > a; ln -s a b; ln a hard; ln -s ../odd dir; ln -s /etc/passwd out; ln -s gone lost; mkfifo f; : > "$(printf "\\377")"',
    ])
    const skipped: SkippedFile[] = []
    const onSkipped = (file: SkippedFile): void => void skipped.push(file)
    const files = await Array.fromAsync(at.ws.collect('odd/**', { maxFiles: 1_000_000, onSkipped }))
    const texts = files.map(async (file) => [file.path, Buffer.from(await file.bytes()).toString()])
    expect(await Promise.all(texts)).toEqual([
      ['odd/a', 'in\n'],
      ['odd/b', 'in\n'],
      ['odd/hard', 'in\n'],
    ])
    const left = skipped.map(({ path, reason }) => [path, reason])
    expect(left).toEqual([
      ['odd/dir', 'link'],
      ['odd/f', 'special'],
      ['odd/lost', 'link'],
      ['odd/out', 'link'],
      ['', 'unlisted'],
    ])
    skipped.length = 0
    expect(await at.ws.save('odd/**', join(host, 'odd'), { onSkipped })).toHaveLength(3)
    expect(skipped.map(({ path, reason }) => [path, reason])).toEqual(left)
    rmSync(join(host, 'odd'), { recursive: true })
  })

  test('save writes below a directory of the host, and never through a link or over a file', async () => {
    await at.ws.put({ 'save/a.txt': 'a', 'save/sub/b.sh': { content: 'b', mode: 0o755 } })
    const target = join(host, 'saved')
    const saved = await at.ws.save('save/**', target)
    expect(saved).toEqual([
      { path: 'save/a.txt', size: 1 },
      { path: 'save/sub/b.sh', size: 1 },
    ])
    expect(readFileSync(join(target, 'save/sub/b.sh'), 'utf8')).toBe('b')
    await expect(at.ws.save('save/**', target)).rejects.toMatchObject({ code: 'path_refused' })
    await at.ws.put({ 'save/a.txt': 'new' })
    await at.ws.save('save/**', target, { overwrite: true })
    expect(readFileSync(join(target, 'save/a.txt'), 'utf8')).toBe('new')
    const trap = join(host, 'trap')
    mkdirSync(trap)
    symlinkSync(host, join(trap, 'save'))
    await expect(at.ws.save('save/**', trap, { overwrite: true })).rejects.toMatchObject({ code: 'path_refused' })
    expect(readdirSync(host).toSorted()).toEqual(['large', 'saved', 'trap'])
  })

  test.skipIf(process.getuid?.() !== 0)('save to a disk that is full leaves whole files alone', async () => {
    const files = Array.from({ length: 40 }, (_, at) => [`many/${at}`, Buffer.alloc(8192, `${at} `)] as const)
    await at.ws.put(Object.fromEntries(files))
    const target = join(host, 'small')
    mkdirSync(target)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', target])
    try {
      for (const overwrite of [false, true]) {
        await expect(at.ws.save('many/*', target, { overwrite })).rejects.toMatchObject({ code: 'no_space' })
        const left = readdirSync(join(target, 'many'))
        expect(left.length).toBeGreaterThan(0)
        expect(new Set(left.map((name) => statSync(join(target, 'many', name)).size))).toEqual(new Set([8192]))
        expect(readdirSync(target)).toEqual(['many'])
        rmSync(join(target, 'many'), { recursive: true })
      }
    } finally {
      execFileSync('umount', ['-l', target])
      rmSync(target, { recursive: true })
    }
  })

  test('save makes no repository, whose configuration Git obeys, unless it may overwrite', async () => {
    const paths = ['bare/HEAD', 'bare/config', 'bare/objects/a', 'bare/refs/a']
    await at.ws.put(Object.fromEntries(paths.map((path) => [path, 'x'])))
    const target = join(host, 'repository')
    await expect(at.ws.save('bare/**', target)).rejects.toMatchObject({ code: 'path_refused' })
    expect(readdirSync(target)).toEqual([])
    expect(await at.ws.save('bare/**', target, { overwrite: true })).toHaveLength(4)
    rmSync(target, { recursive: true })
  })

  test('save refuses names that differ by case alone before anything is written', async () => {
    await at.ws.put({ 'twins/Readme': '1', 'twins/README': '2' })
    const target = join(host, 'twins')
    await expect(at.ws.save('twins/**', target)).rejects.toMatchObject({ code: 'path_refused' })
    expect(readdirSync(host)).not.toContain('twins')
  })

  test('files of a run are put before it, and stay', async () => {
    const { finalData } = await at.ws.run('emit_result(open("given.txt").read())', { files: { 'given.txt': 'given' } })
    expect(finalData).toBe('given')
    expect((await at.ws.exec('cat', ['given.txt'])).stdout).toBe('given')
  })

  test('files are there from the start of a workspace', async () => {
    await using ws = await at.sg.workspace({ files: { 'in/first.txt': 'first' } })
    expect((await ws.exec('cat', ['in/first.txt'])).stdout).toBe('first')
  })

  test('a file of the host is shown read-only, without a copy where it can be linked', async () => {
    const state = (await at.sg.report()).probes['state_dir'] as string
    const near = mkdtempSync(join(state, 'input-'))
    try {
      writeFileSync(join(near, 'big'), 'x'.repeat(1000), { mode: 0o644 })
      writeFileSync(join(near, 'private'), 'secret', { mode: 0o600 })
      const big = await at.ws.addInput('big.csv', join(near, 'big'))
      const own = await at.ws.addInput('own', join(near, 'private'))
      expect([big, own]).toEqual([
        { path: '/inputs/big.csv', how: 'linked' },
        { path: '/inputs/own', how: 'copied' },
      ])
      // Others on the host cannot enter it.
      expect(statSync(join(state, 'sandboxes', `${at.ws.id}.inputs`)).mode & 0o777).toBe(0o700)
      const { stdout } = await at.ws.exec('sh', [
        '-c',
        'cd /inputs; wc -c < big.csv; cat own; rm big.csv; echo x > new; ls',
      ])
      expect(stdout).toBe('1000\nsecretbig.csv\nown\n')
      await at.ws.exec('python3', ['-c', 'open("/inputs/big.csv", "r+").write("changed")'])
      expect(readFileSync(join(near, 'big'), 'utf8')).toBe('x'.repeat(1000))
      for (const [name, path] of [
        ['own', 'big'],
        ['../x', 'big'],
        ['.x', 'big'],
        ['new', 'missing'],
        ['new', '.'],
      ] as const)
        await expect(at.ws.addInput(name, join(near, path))).rejects.toMatchObject({ code: 'invalid_request' })
      const other = await at.sg.workspace()
      expect((await other.exec('ls', ['/inputs'])).stdout).toBe('')
      await other.close()
      const left = readdirSync(join(state, 'sandboxes')).filter((name) => name.startsWith(other.id))
      expect(left).toEqual([])
    } finally {
      rmSync(near, { recursive: true })
    }
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
})
