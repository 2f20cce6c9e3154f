import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listResources, localEngine, pruneOrphans } from '../../../../src/engines/local/index.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { NEEDS_ROOT } from './host-place.ts'
import { resultOf, SPEC } from './plain-sandbox.ts'
import { recordsIn, scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('packages', () => {
  const write = (directory: string, value: number): void => {
    mkdirSync(join(directory, 'sg_package'), { recursive: true })
    writeFileSync(join(directory, 'sg_package/__init__.py'), `VALUE = ${value}\n`)
  }
  /** Packages below a directory that only its owner can enter. */
  const shutAway = (home: string): string => {
    chmodSync(home, 0o700)
    write(join(home, 'packages'), 1)
    return join(home, 'packages')
  }
  const IMPORT = 'import sg_package\nemit_result(sg_package.VALUE)'

  const importWith = async (stateDir: string, packages: string): Promise<[unknown, number]> => {
    const engine = localEngine({ stateDir })
    const sandbox = await engine.create({ ...SPEC, packages })
    const value = await resultOf(sandbox, IMPORT)
    await sandbox.destroy()
    await engine.close()
    return [value, readdirSync(join(stateDir, 'private')).filter((name) => name.startsWith('packages-')).length]
  }

  test('a directory that everybody can enter is bound directly', async () => {
    using state = scopedDirectory()
    using packages = scopedDirectory('packages')
    write(packages.path, 1)
    expect(await importWith(state.path, packages.path)).toEqual([1, 0])
  })

  test.skipIf(NEEDS_ROOT)('a copy keeps the time of modification, by which Python knows its byte code', async () => {
    using state = scopedDirectory()
    using home = scopedDirectory('home')
    const packages = shutAway(home.path)
    utimesSync(join(packages, 'sg_package/__init__.py'), 1e9, 1e9)
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create({ ...SPEC, packages })
    const time = 'import os, sg_package\nemit_result(os.stat(sg_package.__file__).st_mtime)'
    expect(await resultOf(sandbox, time)).toBe(1e9)
    await sandbox.destroy()
    await engine.close()
  })

  test.skipIf(NEEDS_ROOT)(
    'one that the sandbox cannot enter is copied, again when it changed, never twice',
    async () => {
      using state = scopedDirectory()
      using home = scopedDirectory('home')
      const packages = shutAway(home.path)
      expect(await importWith(state.path, packages)).toEqual([1, 1])
      expect(await importWith(state.path, packages)).toEqual([1, 1])
      write(packages, 10)
      expect(await importWith(state.path, packages)).toEqual([10, 2])
    },
  )

  test.skipIf(NEEDS_ROOT)(
    'other users cannot find a copy, and it contains nothing from outside the directory',
    async () => {
      using state = scopedDirectory()
      using home = scopedDirectory('home')
      const packages = shutAway(home.path)
      writeFileSync(join(home.path, 'secret.py'), 'VALUE = 2\n')
      symlinkSync('../secret.py', join(packages, 'outward.py'))
      symlinkSync('sg_package', join(packages, 'inward'))
      symlinkSync(join(packages, 'sg_package'), join(packages, 'absolute'))
      expect(await importWith(state.path, packages)).toEqual([1, 1])
      const copies = join(state.path, 'private')
      expect(statSync(copies).mode & 0o777).toBe(0o711)
      const [copy = ''] = readdirSync(copies).filter((name) => name.startsWith('packages-'))
      expect(readdirSync(join(copies, copy)).toSorted()).toEqual(['absolute', 'inward', 'sg_package'])
      expect(['absolute', 'inward'].map((name) => readlinkSync(join(copies, copy, name)))).toEqual([
        'sg_package',
        'sg_package',
      ])
    },
  )

  test.skipIf(NEEDS_ROOT)('scripts cannot read a file that only its owner may read', async () => {
    using state = scopedDirectory()
    using packages = scopedDirectory('packages')
    write(packages.path, 1)
    chmodSync(join(packages.path, 'sg_package/__init__.py'), 0o600)
    await expect(importWith(state.path, packages.path)).rejects.toThrow(/PermissionError/)
  })

  test('unfinished copies of a killed host and copies unused for 30 days are listed and pruned', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    const makeDirectory = (name: string, days = 0): string => {
      const path = join(state.path, name)
      mkdirSync(path)
      const then = Date.now() / 1000 - days * 86_400
      utimesSync(path, then, then)
      return path
    }
    const owner = recordsIn(state.path)[0]
    const gone = [
      makeDirectory('private/.400-3f0f3c55-0000-4000-8000-000000000000-x'),
      makeDirectory('private/packages-old', 31),
      makeDirectory('staged/.0-3f0f3c55-0000-4000-8000-000000000000-x'),
      makeDirectory('staged/harness-old', 31),
    ]
    const kept = [
      makeDirectory(`staged/.${owner?.slot}-${owner?.owner}-x`),
      makeDirectory('private/packages-new', 29),
      makeDirectory('staged/harness-new', 29),
    ]
    const listed = (await listResources(state.path)).filter(({ kind }) => kind === 'directory')
    expect(listed.map(({ id, owner: of }) => [id, of])).toEqual(gone.map((path) => [path, 'gone']))
    expect((await pruneOrphans(state.path)).filter(({ kind }) => kind === 'directory')).toEqual(listed)
    expect([...gone, ...kept].filter((path) => existsSync(path))).toEqual(kept)
    await sandbox.destroy()
    await engine.close()
  })

  test('one that is missing is named by its option', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    await expect(engine.create({ ...SPEC, packages: '/no/such/directory' })).rejects.toMatchObject({
      code: 'packages_unreadable',
      message: expect.stringContaining('packages: /no/such/directory') as string,
    })
    await expect(engine.create({ ...SPEC, toolsDir: '/etc/passwd' })).rejects.toMatchObject({
      code: 'packages_unreadable',
    })
    expect(recordsIn(state.path)).toEqual([])
    await engine.close()
  })
})
