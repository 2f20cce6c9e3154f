import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { addedFiles } from '../../../src/environments/byte-code.ts'
import { findDifferences, tidyContent } from '../../../src/environments/content.ts'
import { addHomeFiles, hasHomeFiles } from '../../../src/environments/index.ts'

const ROOM = new URL('../../../src/environments/index.ts', import.meta.url).href

/** Adds two files in another process, which is killed when it reads the second. */
function killBetweenTwoFiles(packages: string): NodeJS.Signals | null {
  const program = `import { addHomeFiles } from ${JSON.stringify(ROOM)}
const second = { path: '.cache/b', get content() { process.kill(process.pid, 'SIGKILL'); for (;;); } }
await addHomeFiles(${JSON.stringify(packages)}, [{ path: '.cache/a', content: Buffer.from('a') }, second])`
  return spawnSync(process.execPath, ['--input-type=module', '-e', program]).signal
}

test('home files are there together or not at all, even if the process that adds them is killed', async () => {
  const above = mkdtempSync(join(tmpdir(), 'sandglass-home-'))
  onTestFinished(() => rmSync(above, { recursive: true }))
  const packages = join(above, 'packages')
  mkdirSync(join(packages, 'demo-1.dist-info'), { recursive: true })
  const { manifest } = await tidyContent(packages)

  expect(killBetweenTwoFiles(packages)).toBe('SIGKILL')
  expect(hasHomeFiles(packages)).toBe(false)
  expect(await findDifferences(packages, manifest, await addedFiles(packages))).toEqual([])

  const files = ['a', 'b'].map((name) => ({ path: `.cache/${name}`, content: Buffer.from(name) }))
  await addHomeFiles(packages, files)
  await addHomeFiles(packages, [{ path: '.cache/c', content: Buffer.from('c') }]) // another process was first
  const home = join(packages, '.sandglass/home/.cache')
  expect(readdirSync(home).map((name) => readFileSync(join(home, name), 'utf8'))).toEqual(['a', 'b'])
  expect(hasHomeFiles(packages)).toBe(true)
  expect(await findDifferences(packages, manifest, await addedFiles(packages))).toEqual([])
})
