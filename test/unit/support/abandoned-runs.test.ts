import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeRunDirectory, removeAbandoned } from '../../support/abandoned-runs.ts'

let parent: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'sandglass-abandoned-'))
})
afterEach(() => rmSync(parent, { recursive: true, force: true, maxRetries: 10 }))

/** A pid that no process has. */
function findFreePid(): number {
  let pid = 4_000_000
  while (existsSync(`/proc/${pid}`)) pid += 1
  return pid
}

test('directories of runs that were killed are removed; those of this run and of others stay', () => {
  const own = makeRunDirectory(parent)
  const killed = join(parent, basename(own).replace(`${process.pid}`, `${findFreePid()}`))
  for (const path of [join(killed, 'found'), join(parent, 'other')]) mkdirSync(path, { recursive: true })
  writeFileSync(join(killed, 'found/a'), 'a')
  removeAbandoned(parent)
  expect(readdirSync(parent).toSorted()).toEqual(['other', basename(own)])
})

test('a process of a killed run that still writes into its directory fails no start', async () => {
  const killed = join(parent, `sandglass-test-run-${findFreePid()}-x`)
  mkdirSync(killed)
  const begun = new Int32Array(new SharedArrayBuffer(4))
  const writer = new Worker(WRITER, { eval: true, workerData: { killed, begun } })
  const gone = once(writer, 'exit')
  while (Atomics.load(begun, 0) === 0) await setImmediate()
  removeAbandoned(parent)
  await gone
  expect(readdirSync(parent)).toEqual([])
})

/** Writes files until the directory is gone. */
const WRITER = `
const { writeFileSync } = require('node:fs')
const { workerData: { killed, begun } } = require('node:worker_threads')
try {
  for (let n = 0; n < 100_000; n += 1) {
    writeFileSync(killed + '/' + n, '')
    Atomics.store(begun, 0, n)
  }
} catch {}
`
