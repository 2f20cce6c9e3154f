import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { printedBy, sourceName } from '../../support/bounded-program.ts'

// There, Node's recursive mkdir loops endlessly.
const { skip } = await requireLocalEngine()
const directory = mkdtempSync(join(tmpdir(), 'sandglass-procfs-'))
const link = join(directory, 'link')
symlinkSync('/proc/1', link)
afterAll(() => rmSync(directory, { recursive: true }))

const PLACES = ['/proc/1/foo', join(link, 'foo')]
const INDEX = sourceName('src/index.ts')
/** Prints the code and the message of a thrown error. */
const reportError = (imports: string, act: string): string => `${imports}
try { ${act} } catch (error) { console.log(JSON.stringify([error.code, error.message])) }`

describe.each(PLACES)('a directory below procfs (%s)', (place) => {
  test.skipIf(skip)(
    'is rejected at once as the state directory of the local engine',
    async () => {
      const program = reportError(
        `import { createSandglass } from ${INDEX}`,
        "await using sg = await createSandglass({ engine: 'local' }); console.log('started')",
      )
      const [code, message] = JSON.parse(await printedBy(program, { SANDGLASS_STATE_DIR: place })) as string[]
      expect(code).toBe('state_dir_unusable')
      expect(message).toContain(
        `the state directory ${place} cannot be used: ${place} cannot be created: ENOENT; make it writable or name another one (option stateDir, variable SANDGLASS_STATE_DIR)`,
      )
    },
    90_000,
  )

  test('cannot hold the snapshot of Pyodide, which stays in memory, and scripts run', async () => {
    const program = reportError(
      `import { createSandglass, pyodideEngine } from ${INDEX}`,
      `const engine = pyodideEngine({ cacheDir: ${JSON.stringify(place)} })
await using sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
console.log((await sg.run('emit_result(6 * 7)')).finalData)`,
    )
    expect(await printedBy(program)).toBe('42\n')
  }, 90_000)
})
