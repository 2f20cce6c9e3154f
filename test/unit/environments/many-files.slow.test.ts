import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sourcesWithoutByteCode } from '../../../src/environments/byte-code.ts'
import { tidyContent } from '../../../src/environments/content.ts'
import type { Environment } from '../../../src/environments/index.ts'
import { Preloads } from '../../../src/preloads.ts'
import { watchGrowth } from '../../support/memory.ts'
import { stallDuring } from '../../support/stall.ts'

const FILES = 60_000
const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: '' }

function directory(): string {
  // In memory where that is possible: a busy disk takes minutes to make and remove so many files.
  const path = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'sandglass-many-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

test.each([
  ['at the top', 0],
  ['in thirty levels', 30],
])(
  'packages with very many files %s block the host for less than 250 ms and cost it less than 64 MiB',
  async (_, levels) => {
    const root = directory()
    for (let level = 0; level <= levels; level += 1) {
      const parent = join(root, ...Array.from({ length: level }, () => 'd'))
      mkdirSync(parent, { recursive: true })
      for (let at = 0; at < FILES / (levels + 1); at += 1) writeFileSync(join(parent, `m${at}.py`), '')
    }
    const growth = watchGrowth()
    let modules = 0
    let paths: string[] = []
    const stall = await stallDuring(async () => {
      modules = (await tidyContent(root)).modules.length
      paths = (await sourcesWithoutByteCode(root, TARGET)).map(({ path }) => path)
    })
    expect([stall < 250, growth() < 64]).toEqual([true, true])
    expect([modules <= 10_000, paths.length, new Set(paths).size]).toEqual([true, 20_000, 20_000])
    expect(paths[0]?.includes('/')).toBe(false)
  },
)

test('RECORD files of the largest size block the host for less than 250 ms and cost it less than 64 MiB', async () => {
  const root = directory()
  for (const [at, lines] of [4_000_000, 4_000_000, 4_000_000, 4_000_000, 15_000_000].entries()) {
    mkdirSync(join(root, `a${at}-1.dist-info`))
    writeFileSync(join(root, `a${at}-1.dist-info/RECORD`), Buffer.alloc(4 * lines, 'x,,\n'))
  }
  const growth = watchGrowth()
  const stall = await stallDuring(() => tidyContent(root))
  expect([stall < 250, growth() < 64]).toEqual([true, true])
})

test('a script with very many imports is compared with an environment of very many modules in less than 250 ms', async () => {
  const environment = {
    key: 'k',
    modules: Array.from({ length: 10_000 }, (_, at) => `m${at}`),
  } as unknown as Environment
  const line = (at: number): string => `import ${Array.from({ length: 150 }, (_, n) => `z${at * 150 + n}`).join(',')}\n`
  const script = Array.from({ length: 800 }, (_, at) => line(at)).join('')
  const imported = Array.from({ length: 32 }, (_, at) => `m${at}.${'z'.repeat(190)}`)
  const stall = await stallDuring(async () => new Preloads().note(environment, { script, imported }))
  expect(stall).toBeLessThan(250)
})
