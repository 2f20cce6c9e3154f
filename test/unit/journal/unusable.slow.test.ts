import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsonlStore, sqliteStore } from '../../../src/journal/index.ts'
import { printedBy, sourceName } from '../../support/bounded-program.ts'
import { journalDirectory } from './journal-directory.ts'

const directory = journalDirectory()

describe('a place that cannot hold a journal', () => {
  const reasonOf = (act: () => unknown): string => {
    try {
      act()
    } catch (error) {
      if (error instanceof Error) return error.message
    }
    throw new Error('it threw nothing')
  }

  test('is reported briefly with its reason', async () => {
    const file = join(directory(), 'file')
    await writeFile(file, '')
    const long = join(directory(), 'x'.repeat(5000))
    expect([
      reasonOf(() => jsonlStore(join(file, 'below'))),
      reasonOf(() => sqliteStore(join(file, 'below', 'runs.db'))),
      reasonOf(() => jsonlStore('/proc')),
      reasonOf(() => jsonlStore(long)).replaceAll(/x{50,}/g, 'x…'),
    ]).toEqual([
      `the journal ${file}/below cannot be used: ${file} is not a directory`,
      `the journal ${file}/below/runs.db cannot be used: ${file} is not a directory`,
      'the journal /proc cannot be used: ENOENT (open)',
      `the journal ${directory()}/x…… cannot be used: ${directory()}/x…… cannot be inspected: ENAMETOOLONG`,
    ])
  })

  test.each(['jsonlStore', 'sqliteStore'])(
    'rejects %s on procfs at once',
    async (store) => {
      const program = `import { ${store} } from ${sourceName('src/journal/index.ts')}
try { ${store}('/proc/1/foo/runs') } catch (error) { console.log(error.message) }`
      expect(await printedBy(program)).toBe(
        'the journal /proc/1/foo/runs cannot be used: /proc/1/foo cannot be created: ENOENT\n',
      )
    },
    30_000,
  )
})
