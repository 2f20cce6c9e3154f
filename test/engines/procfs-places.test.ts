import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../local-engine.ts'
import { printedBy, sourceName } from '../support/bounded-program.ts'

// There Node's own way to make a directory with all above it goes round for ever.
const { skip } = await requireLocalEngine()
const directory = mkdtempSync(join(tmpdir(), 'sandglass-procfs-'))
const link = join(directory, 'link')
symlinkSync('/proc/1', link)
afterAll(() => rmSync(directory, { recursive: true }))

const PLACES = ['/proc/1/foo', join(link, 'foo')]
const INDEX = sourceName('src/index.ts')
/** Prints the code and the message of what is thrown. */
const told = (imports: string, act: string): string => `${imports}
try { ${act} } catch (error) { console.log(JSON.stringify([error.code, error.message])) }`

describe.each(PLACES)('a directory below procfs (%s)', (place) => {
  test.skipIf(skip)(
    'is no place for the state of the local engine, which is told at once',
    async () => {
      const program = told(
        `import { createSandglass } from ${INDEX}`,
        "await using sg = await createSandglass({ engine: 'local' }); console.log('started')",
      )
      const [code, message] = JSON.parse(await printedBy(program, { SANDGLASS_STATE_DIR: place })) as string[]
      expect(code).toBe('state_dir_unusable')
      expect(message).toContain(
        `the state directory ${place} cannot be used: ${place} cannot be made: ENOENT; make it writable or name another one (option stateDir, variable SANDGLASS_STATE_DIR)`,
      )
    },
    90_000,
  )

  test('is no place for the snapshot of Pyodide: it stays in memory, and scripts run', async () => {
    const program = told(
      `import { createSandglass, pyodideEngine } from ${INDEX}`,
      `const engine = pyodideEngine({ cacheDir: ${JSON.stringify(place)} })
await using sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
console.log((await sg.run('emit_result(6 * 7)')).finalData)`,
    )
    expect(await printedBy(program)).toBe('42\n')
  }, 90_000)

  test('is no place for root file systems of images, which is told at once', async () => {
    const program = told(
      `import { makeRootfs } from ${sourceName('src/engines/docker/rootfs-cache.ts')}`,
      `await makeRootfs(${JSON.stringify(place)}, 'key', () => { throw new Error('it was asked to make one') })`,
    )
    expect(JSON.parse(await printedBy(program))).toEqual([
      'state_dir_unusable',
      `the cache ${place} cannot be written: ${place} cannot be made: ENOENT; make it writable or name another one (option cacheDir; XDG_CACHE_HOME unless you are root)`,
    ])
  }, 90_000)
})
