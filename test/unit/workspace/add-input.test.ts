import { chmodSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { moveTo, showInput } from '../../../src/workspace/add-input.ts'
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
  const shown = showInput(
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
  const copied = showInput(directory, { name: 'big', source, tree: undefined }, controller.signal)
  controller.abort()
  await expect(copied).rejects.toMatchObject({ code: 'aborted' })
  chmodSync(source, 0o644)
  await expect(showInput(directory, { name: 'big', source, tree: undefined }, controller.signal)).rejects.toMatchObject(
    { code: 'aborted' },
  )
  expect(readdirSync(directory)).toEqual([])
})

test('a name that is taken keeps its file, whether the other is linked or copied', async () => {
  const directory = openTemporary('inputs')
  writeFileSync(join(directory, 'big'), 'first')
  const source = privateFile()
  const { signal } = new AbortController()
  for (const mode of [0o600, 0o644]) {
    chmodSync(source, mode)
    await expect(showInput(directory, { name: 'big', source, tree: undefined }, signal)).rejects.toMatchObject({
      code: 'invalid_request',
    })
  }
  expect(readFileSync(join(directory, 'big'), 'utf8')).toBe('first')
  expect(readdirSync(directory)).toEqual(['big'])
})

test('a draft that cannot be moved leaves no file of its name', async () => {
  const directory = openTemporary('inputs')
  await expect(moveTo(join(directory, '.gone'), join(directory, 'big'))).rejects.toMatchObject({ code: 'ENOENT' })
  expect(readdirSync(directory)).toEqual([])
})
