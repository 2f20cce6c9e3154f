/**
 * Writes the command line, the library and the packages that they load as few files into a new directory, which is the argument. Node
 * loads them in a third of the time that the files of `src/` take, and tests start the command line hundreds of times.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { withPreparedGuest } from '../engines/pyodide/guest-without-types.ts'

const SOURCE = join(import.meta.dirname, '../../../src')
/** Packages that load compiled code or data from their own directories: found by their names, when they are needed. */
const SEPARATE = /^(?:better-sqlite3|dockerode|pyodide)(?:\/|$)/
/** What every command loads, also one that only reports a wrong flag. */
const OF_EACH_COMMAND =
  /\/src\/(?:errors|support|outcomes|engines\/index|cli\/(?:args|context|exit-codes|failure|flags|help|output|signals|terminal-text|version))\b/
/** What most commands load. As one file, Node loads it in 60 ms less than as fifty. */
const OF_MOST_COMMANDS = /\/src\/|\/zod\//

const directory = process.argv[2] ?? ''
const run = process.env['SANDGLASS_TEST_RUN']
const bundle = await rolldown({
  input: { main: join(SOURCE, 'cli/main.ts'), index: join(SOURCE, 'index.ts') },
  platform: 'node',
  plugins: [
    {
      name: 'places',
      resolveId: (name: string) =>
        SEPARATE.test(name) ? { id: import.meta.resolve(name), external: true } : undefined,
      // Threads, data and packages are found from the place of the source.
      transform(code: string, id: string) {
        if (!id.endsWith('.ts')) return undefined
        const prepared = run === undefined ? code : withPreparedGuest(id, code, run)
        return prepared
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(id)))
          .replaceAll('import.meta.filename', JSON.stringify(id))
          .replaceAll(/import\.meta\.resolve\('([^']+)'\)/g, (_, name: string) =>
            JSON.stringify(import.meta.resolve(name)),
          )
      },
    },
  ],
})
// Other workers may do the same at the same time: the first one wins.
const own = `${directory}.${process.pid}`
await bundle.write({
  dir: own,
  format: 'esm',
  codeSplitting: {
    groups: [
      { name: 'start', priority: 2, test: OF_EACH_COMMAND },
      { name: 'shared', priority: 1, minShareCount: 4, test: OF_MOST_COMMANDS },
    ],
  },
})
// Without it, Node parses each file to see whether it is a module.
writeFileSync(join(own, 'package.json'), '{"type":"module"}\n')
try {
  renameSync(own, directory)
} catch {
  rmSync(own, { recursive: true })
}
