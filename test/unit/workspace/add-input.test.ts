import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkInput, moveFile, mountInput } from '../../../src/workspace/add-input.ts'
import { openDirectory } from '../../support/state-directory.ts'

const BYTES = 16 * 1024 * 1024

function openTemporary(name: string): string {
  const path = openDirectory(name)
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

/** A file that others may not read, so that it is copied. */
function privateFile(): string {
  const source = join(openTemporary('source'), 'big')
  writeFileSync(source, '')
  truncateSync(source, BYTES)
  chmodSync(source, 0o600)
  return source
}

test('a copy has its name when it is complete, and never before', async () => {
  const directory = openTemporary('inputs')
  const sizes = new Set<number>()
  let isOver = false
  const shown = mountInput(
    directory,
    { name: 'big', source: privateFile(), tree: undefined },
    new AbortController().signal,
  ).finally(() => {
    isOver = true
  })
  while (!isOver) {
    if (readdirSync(directory).includes('big')) sizes.add(statSync(join(directory, 'big')).size)
    await setImmediate()
  }
  expect((await shown).how).toBe('copied')
  sizes.add(statSync(join(directory, 'big')).size)
  expect([...sizes]).toEqual([BYTES])
  expect(readdirSync(directory)).toEqual(['big'])
  expect(statSync(join(directory, 'big')).mode & 0o777).toBe(0o444)
})

test('an abort leaves nothing, also of a file that could be linked', async () => {
  const directory = openTemporary('inputs')
  const source = privateFile()
  const controller = new AbortController()
  const copied = mountInput(directory, { name: 'big', source, tree: undefined }, controller.signal)
  controller.abort()
  await expect(copied).rejects.toMatchObject({ code: 'aborted' })
  chmodSync(source, 0o644)
  await expect(
    mountInput(directory, { name: 'big', source, tree: undefined }, controller.signal),
  ).rejects.toMatchObject({ code: 'aborted' })
  expect(readdirSync(directory)).toEqual([])
})

test('a name that is taken keeps its file, whether the other is linked or copied', async () => {
  const directory = openTemporary('inputs')
  writeFileSync(join(directory, 'big'), 'first')
  const source = privateFile()
  const { signal } = new AbortController()
  for (const mode of [0o600, 0o644]) {
    chmodSync(source, mode)
    await expect(mountInput(directory, { name: 'big', source, tree: undefined }, signal)).rejects.toMatchObject({
      code: 'invalid_request',
    })
  }
  expect(readFileSync(join(directory, 'big'), 'utf8')).toBe('first')
  expect(readdirSync(directory)).toEqual(['big'])
})

test('of inputs that replace one at the same time, one has its name, and never the old one', async () => {
  const source = openTemporary('source')
  const { signal } = new AbortController()
  const add = async (directory: string, content: string): Promise<string> => {
    const path = join(source, content)
    writeFileSync(path, content)
    await mountInput(directory, await checkInput('it', path, signal), signal, { replace: true })
    return content
  }
  const news = ['1', '2', '3', '4']
  for (let round = 0; round < 10; round += 1) {
    const directory = openTemporary('inputs')
    await add(directory, 'old')
    expect(await Promise.all(news.map((content) => add(directory, content)))).toEqual(news)
    expect(news).toContain(readFileSync(join(directory, 'it'), 'utf8'))
    expect(readdirSync(directory)).toEqual(['it'])
  }
})

test('a draft that cannot be moved leaves no file of its name', async () => {
  const directory = openTemporary('inputs')
  expect(() => moveFile(join(directory, '.gone'), join(directory, 'big'))).toThrow(
    expect.objectContaining({ code: 'ENOENT' }),
  )
  expect(readdirSync(directory)).toEqual([])
})

describe('a directory of the host that becomes a link behind its check', () => {
  /** A directory with `d/file`, and a way to put a link to another directory with a `file` in the place of `d`. */
  function openRaced(mode: number): { readonly root: string; readonly swap: () => void } {
    const base = realpathSync(openTemporary('raced'))
    const root = join(base, 'root')
    for (const directory of [join(root, 'd'), join(base, 'hidden')]) {
      mkdirSync(directory, { recursive: true })
      writeFileSync(join(directory, 'file'), directory)
      chmodSync(join(directory, 'file'), mode)
    }
    const swap = (): void => {
      renameSync(join(root, 'd'), join(root, 'was'))
      symlinkSync(join(base, 'hidden'), join(root, 'd'))
    }
    return { root, swap }
  }
  const { signal } = new AbortController()

  test.each([
    ['a file that would be linked', 'd/file', 0o644],
    ['a file that would be copied', 'd/file', 0o600],
    ['a tree', '', 0o644],
  ])('%s shows nothing from outside', async (_what, path, mode) => {
    const { root, swap } = openRaced(mode)
    const inputs = openTemporary('inputs')
    const input = await checkInput('shown', join(root, path), signal)
    swap()
    await expect(mountInput(inputs, input, signal)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(readdirSync(inputs)).toEqual([])
  })

  test('a path through a link is refused where none may be', async () => {
    const { root, swap } = openRaced(0o644)
    swap()
    for (const path of ['d', 'd/file'])
      await expect(checkInput('shown', join(root, path), signal, true)).rejects.toThrow('leads through a link')
    expect(await checkInput('shown', join(root, 'd/file'), signal)).toMatchObject({ tree: undefined })
  })
})
