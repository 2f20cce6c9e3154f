import { execFileSync } from 'node:child_process'
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
import { dirDigest, type SkippedFile } from '../../../src/workspace/index.ts'
import { testFileRules } from '../../support/workspace-file-rules.ts'
import { inWorkspace } from '../../support/workspace-on-local.ts'

const host = mkdtempSync(join(tmpdir(), 'sandglass-files-'))
afterAll(() => rmSync(host, { recursive: true, force: true }))

await inWorkspace((at) => {
  testFileRules(at)

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

  // Buffers alone: what V8's heap takes depends on what ran before in this process.
  test('the pieces of a large file are freed long before 64 MiB of them wait', async () => {
    await at.ws.exec('truncate', ['-s', '512M', 'large'])
    const held = (): number => process.memoryUsage().arrayBuffers / 1024 / 1024
    const before = held()
    let [size, most] = [0, 0]
    for await (const bytes of at.ws.read('large')) {
      size += bytes.length
      most = Math.max(most, held() - before)
    }
    expect(size).toBe(512 * 1024 * 1024)
    expect(most).toBeLessThan(48)
    await at.ws.remove('large')
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
    expect(readdirSync(host).toSorted()).toEqual(['saved', 'trap'])
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

  // From 500 files on, a thread of the host writes the small ones.
  test('save writes many files, and never through a link or over a file', async () => {
    const files = Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`lots/${n % 7}/${n}`, `content of ${n}`]))
    await at.ws.put({
      ...files,
      'lots/large': Buffer.alloc(200_000, 'large '),
      'lots/tool': { content: '', mode: 0o755 },
    })
    const target = join(host, 'lots')
    const options = { maxFiles: 1000 }
    const read = (path: string): string => readFileSync(join(target, path), 'utf8')
    expect(await at.ws.save('lots/**', target, options)).toHaveLength(602)
    for (const [path, content] of Object.entries(files)) expect([path, read(path)]).toEqual([path, content])
    expect(read('lots/large')).toBe('large '.repeat(40_000).slice(0, 200_000))
    expect(statSync(join(target, 'lots/tool'))).toMatchObject({ size: 0, mode: 0o100755 })

    await at.ws.put({ 'lots/0/0': 'new' })
    await expect(at.ws.save('lots/**', target, options)).rejects.toMatchObject({ code: 'path_refused' })
    expect(read('lots/0/0')).toBe('content of 0')
    await at.ws.save('lots/**', target, { ...options, overwrite: true })
    expect([read('lots/0/0'), readdirSync(target)]).toEqual(['new', ['lots']])

    rmSync(join(target, 'lots/3'), { recursive: true })
    symlinkSync(host, join(target, 'lots/3'))
    await expect(at.ws.save('lots/**', target, { ...options, overwrite: true })).rejects.toMatchObject({
      code: 'path_refused',
    })
    expect(readdirSync(host)).not.toContain('3')
    rmSync(target, { recursive: true })
    await at.ws.remove('lots', { recursive: true })
  })

  test.skipIf(process.getuid?.() !== 0)('many files to a disk that is full leave whole files alone', async () => {
    await at.ws.put(Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`lots/${n}`, Buffer.alloc(1024, 'x')])))
    const target = join(host, 'full')
    mkdirSync(target)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', target])
    try {
      for (const overwrite of [false, true]) {
        const saving = at.ws.save('lots/*', target, { overwrite, maxFiles: 1000 })
        await expect(saving).rejects.toMatchObject({
          code: 'no_space',
          message: expect.stringContaining('lots/') as string,
        })
        const left = readdirSync(join(target, 'lots'))
        expect(left.length).toBeGreaterThan(0)
        expect(new Set(left.map((name) => statSync(join(target, 'lots', name)).size))).toEqual(new Set([1024]))
        expect(readdirSync(target)).toEqual(['lots'])
        rmSync(join(target, 'lots'), { recursive: true })
      }
    } finally {
      execFileSync('umount', ['-l', target])
      rmSync(target, { recursive: true })
    }
  })

  test('save refuses names that differ by case alone before anything is written', async () => {
    await at.ws.put({ 'twins/Readme': '1', 'twins/README': '2' })
    const target = join(host, 'twins')
    await expect(at.ws.save('twins/**', target)).rejects.toMatchObject({ code: 'path_refused' })
    expect(readdirSync(host)).not.toContain('twins')
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
        ['new/../x', 'big'],
        ['big.csv/below', 'big'],
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

  test('a directory of the host is shown as it is now, and nothing in the sandbox can change it', async () => {
    const tree = join(host, 'tree')
    mkdirSync(join(tree, 'deep', 'empty'), { recursive: true })
    writeFileSync(join(tree, 'deep', 'run.sh'), 'pwd\n', { mode: 0o700 })
    writeFileSync(join(tree, 'a'), 'first', { mode: 0o600 })
    symlinkSync('../a', join(tree, 'deep', 'link'))
    const input = await at.ws.addInput('trees/one', tree, { readOnly: true })
    expect(input).toEqual({ path: '/inputs/trees/one', how: 'copied', sha256: await dirDigest(tree) })
    writeFileSync(join(tree, 'a'), 'second')
    const attack =
      'chmod u+w a deep/run.sh . ..; echo x > a; echo x >> deep/run.sh; rm -rf deep; ln -s /etc deep/etc; mv a b; touch new; ' +
      'cat a deep/link; deep/run.sh; ls; ls deep'
    const { stdout } = await at.ws.exec('sh', ['-c', attack], { cwd: '/inputs/trees/one' })
    expect(stdout).toBe('firstfirst/inputs/trees/one\na\ndeep\nempty\nlink\nrun.sh\n')
    await expect(at.ws.addInput('trees/one', tree)).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(at.ws.addInput('trees', tree)).rejects.toMatchObject({ code: 'invalid_request' })
    const again = await at.ws.addInput('trees/one', tree, { replace: true })
    expect(again.sha256).toBe(await dirDigest(tree))
    expect((await at.ws.exec('cat', ['/inputs/trees/one/a'])).stdout).toBe('second')
    expect((await at.ws.exec('ls', ['-A', '/inputs/trees'])).stdout).toBe('one\n')
    await expect(at.ws.exec('pwd', [], { cwd: '/inputs/../etc' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(at.ws.exec('pwd', [], { cwd: '/inputs/none' })).rejects.toMatchObject({ code: 'path_not_found' })
  })

  test.each([
    ['a link that leads out', (tree: string) => symlinkSync('/etc/passwd', join(tree, 'x'))],
    ['a link that leads up', (tree: string) => symlinkSync('../../x', join(tree, 'x'))],
    ['a link to a directory', (tree: string) => symlinkSync('.', join(tree, 'x'))],
    ['a FIFO', (tree: string) => execFileSync('mkfifo', [join(tree, 'x')])],
  ])('a directory with %s is refused, and nothing of it is shown', async (_what, spoil) => {
    const tree = mkdtempSync(join(host, 'spoilt-'))
    writeFileSync(join(tree, 'a'), 'a')
    spoil(tree)
    await expect(at.ws.addInput('spoilt', tree)).rejects.toThrow(/^path: "?x"? /)
    await expect(at.ws.exec('pwd', [], { cwd: '/inputs/spoilt' })).rejects.toMatchObject({ code: 'path_not_found' })
  })
})
