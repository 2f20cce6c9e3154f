import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { tryLock } from '../../../src/support/flock.ts'

const directory = mkdtempSync(join(tmpdir(), 'sandglass-flock-'))
const path = process.env['PATH'] ?? ''
afterEach(() => {
  process.env['PATH'] = path
})
afterAll(() => rmSync(directory, { recursive: true }))

/** Sets PATH to a new directory with these programs: the text of a script and its mode. */
function programs(name: string, files: Readonly<Record<string, readonly [string, number]>>): void {
  const bin = join(directory, name)
  mkdirSync(bin)
  for (const [file, [text, mode]] of Object.entries(files)) {
    writeFileSync(join(bin, file), text)
    chmodSync(join(bin, file), mode)
  }
  process.env['PATH'] = bin
}

test('if neither program can be run, the message has the reason of each, and the package to install', async () => {
  const file = join(directory, 'lock')
  programs('none', {})
  await expect(tryLock(file)).rejects.toThrow(
    `cannot lock ${file}: flock cannot be run (ENOENT), python3 cannot be run (ENOENT); install util-linux or python3`,
  )
  programs('closed', { flock: ['#!/bin/sh\n', 0o644], python3: ['#!/bin/sh\nexit 3\n', 0o755] })
  await expect(tryLock(file)).rejects.toThrow(
    `cannot lock ${file}: flock cannot be run (EACCES), python3 ended with exit code 3; install util-linux or python3`,
  )
})

test('uses python3 when flock cannot lock', async () => {
  const file = join(directory, 'with-python')
  programs('foreign', { flock: ['#!/bin/sh\necho "unrecognized option: E" >&2\nexit 1\n', 0o755] })
  symlinkSync('/usr/bin/python3', join(directory, 'foreign/python3'))
  const held = await tryLock(file)
  expect(held).toBeDefined()
  expect(await tryLock(file)).toBeUndefined()
  held?.release()
  const again = await tryLock(file)
  expect(again).toBeDefined()
  again?.release()
})
