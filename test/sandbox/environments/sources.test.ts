import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { strToU8, zipSync } from 'fflate'
import { afterEach, describe, expect, test } from 'vitest'
import { Environments, parseRequirements } from '../../../src/environments/index.ts'
import { indexSettings } from '../../../src/environments/index-settings.ts'
import { findUv, UV_VERSION } from '../../../src/environments/uv.ts'
import type { EnvironmentOptions } from '../../../src/index.ts'
import { noUv, uv } from '../../support/environments/fixture.ts'
import { demo, helper, newCache, newIndex } from '../../support/environments/indexed.ts'
import { makeWheel, type Wheel } from '../../support/environments/wheel.ts'
import { skipFor } from '../../support/required.ts'

if (noUv !== undefined) skipFor('uv', noUv)
const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' }
const { env } = process
const before = { ...env }
afterEach(() => {
  for (const name of ['PATH', 'UV_INDEX', 'UV_DEFAULT_INDEX', 'NETRC']) {
    if (before[name] === undefined) delete env[name]
    else env[name] = before[name]
  }
})

/** Installs packages; returns the versions and the directory. */
async function install(
  names: readonly string[],
  options: EnvironmentOptions & { readonly cacheDir: string },
): Promise<{ readonly packages: Readonly<Record<string, string>>; readonly path: string }> {
  const environments = new Environments('path' in uv ? { uv: uv.path, ...options } : options)
  try {
    const { environment } = await environments.prepare({ requirements: parseRequirements(names), target: TARGET })
    return environment
  } finally {
    environments.close()
  }
}

/** A source distribution whose build would write a mark. */
function makeSource(name: string, mark: string): Wheel {
  const content = zipSync({
    [`${name}-1.0/setup.py`]: strToU8(`open(${JSON.stringify(mark)}, "w")\n`),
    [`${name}-1.0/PKG-INFO`]: strToU8(`Metadata-Version: 2.1\nName: ${name}\nVersion: 1.0\n`),
  })
  const sha256 = createHash('sha256').update(content).digest('hex')
  return { filename: `${name}-1.0.zip`, name, content, sha256, metadata: '' }
}

describe.skipIf(noUv !== undefined)('packages come from', () => {
  test('an index with a name and a password, in its address or in netrc', async () => {
    const index = await newIndex(demo, helper)
    index.faults.login = 'me:secret'
    await expect(install(['demo'], { cacheDir: newCache(), index: index.address })).rejects.toMatchObject({
      code: 'index_refused',
    })
    const address = index.address.replace('://', '://me:secret@')
    expect((await install(['demo'], { cacheDir: newCache(), index: address })).packages).toEqual({
      demo: '1.0',
      helper: '1.0',
    })
    const cacheDir = newCache()
    env['NETRC'] = join(cacheDir, '..', 'netrc')
    writeFileSync(env['NETRC'], 'machine 127.0.0.1 login me password secret\n', { mode: 0o600 })
    expect((await install(['helper'], { cacheDir, index: index.address })).packages).toEqual({ helper: '1.0' })
  })

  test('a directory of wheels beside the index, and from it alone when offline', async () => {
    const index = await newIndex(helper)
    const cacheDir = newCache()
    const wheels = join(cacheDir, '..', 'wheels')
    mkdirSync(wheels)
    for (const { filename, content } of [demo, makeWheel({ name: 'alone' })])
      writeFileSync(join(wheels, filename), content)
    const both = await install(['demo'], { cacheDir, index: index.address, wheels })
    expect(both.packages).toEqual({ demo: '1.0', helper: '1.0' })
    const alone = await install(['alone'], { cacheDir: newCache(), wheels, offline: true, index: index.address })
    expect(alone.packages).toEqual({ alone: '1.0' })
  })

  test('a further index that UV_INDEX names', async () => {
    const [main, extra] = [await newIndex(helper), await newIndex(demo)]
    env['UV_DEFAULT_INDEX'] = main.address
    env['UV_INDEX'] = `extra=${extra.address}`
    expect((await install(['demo'], { cacheDir: newCache() })).packages).toEqual({ demo: '1.0', helper: '1.0' })
    expect(extra.downloads).toEqual([demo.filename])
  })

  test('an index that answers slowly, and one that is down is named', async () => {
    const index = await newIndex(demo, helper)
    index.faults.delayMs = 300
    expect((await install(['demo'], { cacheDir: newCache(), index: index.address })).packages).toMatchObject({
      demo: '1.0',
    })
    const { address } = index
    await index[Symbol.asyncDispose]()
    env['UV_HTTP_RETRIES'] = '0'
    await expect(install(['demo'], { cacheDir: newCache(), index: address })).rejects.toMatchObject({
      code: 'index_unreachable',
      message: expect.stringContaining(address) as string,
    })
    delete env['UV_HTTP_RETRIES']
  })

  test('PAR-006 wheels only: a source distribution is neither fetched nor executed', async () => {
    const cacheDir = newCache()
    const mark = join(cacheDir, '..', 'mark')
    const index = await newIndex(makeSource('canary', mark))
    await expect(install(['canary'], { cacheDir, index: index.address })).rejects.toMatchObject({
      code: 'dependency_no_wheel',
      message: expect.stringContaining('nothing is built from source') as string,
    })
    expect(index.requests.filter((path) => path.endsWith('.zip'))).toEqual([])
    expect(existsSync(mark)).toBe(false)
  })
})

/** A wheel whose every file would write a mark where uv may write, if it ran. */
function makeMarker(cacheDir: string): Wheel {
  const evil = ['uv', 'work', '..']
    .map((place) => `try: open(${JSON.stringify(join(cacheDir, place, 'mark'))}, "w")\nexcept OSError: pass\n`)
    .join('')
  return makeWheel({
    name: 'marker',
    files: {
      'marker/__init__.py': evil,
      'marker.pth': `import os; exec(${JSON.stringify(evil)})\n`,
      'sitecustomize.py': evil,
      'usercustomize.py': evil,
      'json/__init__.py': evil,
    },
  })
}

describe.skipIf(noUv !== undefined)('nothing of a package is executed', () => {
  test.each([
    ['in the box, where uv may write', false],
    ['without bubblewrap', true],
  ])('%s', async (_where, isPlain) => {
    const cacheDir = newCache()
    if (isPlain) {
      // A bubblewrap that the kernel does not let work.
      const programs = join(cacheDir, '..', 'programs')
      mkdirSync(programs)
      const said = join(cacheDir, '..', 'was-tried')
      writeFileSync(
        join(programs, 'bwrap'),
        `#!/bin/sh\n: > '${said}'\necho 'bwrap: no namespaces here' >&2\nexit 1\n`,
        {
          mode: 0o755,
        },
      )
      env['PATH'] = `${programs}:${env['PATH'] ?? ''}`
    }
    const index = await newIndex(makeMarker(cacheDir))
    const { path } = await install(['marker'], { cacheDir, index: index.address })
    expect(readdirSync(path)).toContain('marker')
    expect(existsSync(join(cacheDir, '..', 'was-tried'))).toBe(isPlain)
    const marks = readdirSync(join(cacheDir, '..'), { recursive: true, encoding: 'utf8' })
    expect(marks.filter((name) => /(?:^|\/)mark$/.test(name))).toEqual([])
  })
})

describe.skipIf(noUv !== undefined)('a uv on PATH', () => {
  test('tells its version once, and again when it is another file; a script is asked each time', async () => {
    const above = join(newCache(), '..')
    const [programs, cacheDir] = [join(above, 'on-path'), join(above, 'other')]
    for (const path of [programs, join(cacheDir, 'bin'), join(cacheDir, 'work')]) mkdirSync(path, { recursive: true })
    env['PATH'] = programs
    const program = join(programs, 'uv')
    const settings = { cacheDir, offline: true, index: indexSettings({}, {}) }
    const find = (): Promise<string> => findUv(settings)
    copyFileSync('path' in uv ? uv.path : '', program)
    expect(await find()).toBe(program)

    const [kept = ''] = readdirSync(join(cacheDir, 'bin'))
    const told = JSON.parse(readFileSync(join(cacheDir, 'bin', kept), 'utf8')) as { version: string }
    expect(told.version).toContain('uv 0.13.')
    writeFileSync(join(cacheDir, 'bin', kept), JSON.stringify({ ...told, version: 'uv 0.1.0' }))
    await expect(find()).rejects.toMatchObject({ code: 'installer_missing' })
    utimesSync(program, 1, 1)
    expect(await find()).toBe(program)

    rmSync(program)
    const count = join(above, 'asked')
    const write = (version: string): void => {
      writeFileSync(program, `#!/bin/sh\necho x >> '${count}'\necho uv ${version}\n`, { mode: 0o755 })
      utimesSync(program, 1, 1)
    }
    write('0.13.1')
    expect([await find(), await find()]).toEqual([program, program])
    write('0.1.0')
    await expect(find()).rejects.toMatchObject({ code: 'installer_missing' })
    expect(readFileSync(count, 'utf8')).toBe('x\n'.repeat(3))
  })
})

describe.skipIf(noUv !== undefined)('the private copy of uv', () => {
  test('is taken from the index only with the SHA-256 that is pinned, and is downloaded once', async () => {
    const tags = 'py3-none-musllinux_1_1_x86_64'
    const filename = `uv-${UV_VERSION}-${tags}.whl`
    const false_ = { ...makeWheel({ name: 'uv', version: UV_VERSION }), filename }
    const index = await newIndex(false_)
    env['PATH'] = '/nonexistent'
    const cacheDir = join(newCache(), '..', 'other')
    const settings = { cacheDir, offline: false, index: indexSettings({ index: index.address }, {}) }
    let downloads = 0
    const onDownload = (): void => void (downloads += 1)
    await expect(findUv(settings, undefined, onDownload)).rejects.toMatchObject({
      code: 'index_unreachable',
      message: expect.stringMatching(/does not have the pinned SHA-256.*pip install uv/s) as string,
    })
    expect(existsSync(join(cacheDir, 'bin'))).toBe(false)
    await expect(findUv({ ...settings, offline: true }, undefined, onDownload)).rejects.toMatchObject({
      code: 'installer_missing',
    })
    mkdirSync(join(cacheDir, 'bin'), { recursive: true })
    const own = join(cacheDir, 'bin', `uv-${UV_VERSION}`)
    writeFileSync(own, '')
    expect(await findUv({ ...settings, offline: true }, undefined, onDownload)).toBe(own)
    expect(downloads).toBe(1)
  })
})

describe.skipIf(noUv !== undefined || process.getuid?.() !== 0)('a cache', () => {
  test('of another user is refused by name', async () => {
    const { chownSync } = await import('node:fs')
    const cacheDir = newCache()
    mkdirSync(cacheDir, { recursive: true })
    chownSync(cacheDir, 12_345, 12_345)
    await expect(install(['demo'], { cacheDir })).rejects.toMatchObject({
      code: 'cache_dir_unusable',
      message: expect.stringContaining('it belongs to uid 12345') as string,
    })
  })
})
